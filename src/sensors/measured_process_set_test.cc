// SPDX-License-Identifier: Apache-2.0
#include "sensors/measured_process_set.h"

#include <gtest/gtest.h>

#include "support/fake_proc.h"

namespace joulemap::sensors {
namespace {

using namespace std::string_literals;

constexpr pid_t kRecorderPid = 500;
constexpr pid_t kProgramPid = 400;

// A shell (300) has started a program (kProgramPid) and another process (600). The program has started the recorder.
class MeasuredProcesses : public testing::Test {
 protected:
  MeasuredProcesses() {
    proc_.add(300);
    proc_.add(kProgramPid, {.parent = 300});
    proc_.add(kRecorderPid, {.parent = kProgramPid});
    proc_.add(600, {.parent = 300});
    proc_.set_self(kRecorderPid, true);
  }
  FakeProc proc_;
};

TEST_F(MeasuredProcesses, TheCommandAndItsDescendantsAreMeasured) {
  proc_.add(501, {.parent = kRecorderPid});
  proc_.add(502, {.parent = 501});
  MeasuredProcessSet measured_processes({}, proc_.path());
  for (const pid_t pid : {kRecorderPid, 501, 502}) EXPECT_TRUE(measured_processes.contains(pid)) << pid;
  for (const pid_t pid : {300, kProgramPid, 600, 0, 999}) EXPECT_FALSE(measured_processes.contains(pid)) << pid;
}

TEST_F(MeasuredProcesses, TheProgramThatStartedTheRecorderAndItsWorkersAreMeasured) {
  proc_.add(401, {.parent = kProgramPid});
  MeasuredProcessSet measured_processes({.root_pids = {kProgramPid}}, proc_.path());
  EXPECT_TRUE(measured_processes.contains(kProgramPid));
  EXPECT_TRUE(measured_processes.contains(401));
  proc_.add(402, {.parent = 401});
  EXPECT_TRUE(measured_processes.contains(402));
  EXPECT_FALSE(measured_processes.contains(300));
  EXPECT_FALSE(measured_processes.contains(600));
}

TEST_F(MeasuredProcesses, ProcessesStayMeasuredWhenTheirParentExits) {
  proc_.add(401, {.parent = kProgramPid});
  MeasuredProcessSet measured_processes({.root_pids = {kProgramPid}}, proc_.path());
  ASSERT_TRUE(measured_processes.contains(401));
  proc_.add(401, {.parent = 1});
  EXPECT_TRUE(measured_processes.contains(401));
  proc_.add(401, {.parent = 1, .start_ticks = 900});  // another process with that pid
  EXPECT_FALSE(measured_processes.contains(401));
}

TEST_F(MeasuredProcesses, ProcessesStayMeasuredWhenTheyHaveJustExited) {
  proc_.add(401, {.parent = kProgramPid});
  MeasuredProcessSet measured_processes({.root_pids = {kProgramPid}}, proc_.path());
  ASSERT_TRUE(measured_processes.contains(401));
  proc_.remove(401);
  EXPECT_TRUE(measured_processes.contains(401));
  EXPECT_FALSE(measured_processes.contains(402));
}

TEST_F(MeasuredProcesses, ProcessesWithTheRecordersVariableAreMeasured) {
  MeasuredProcessSet measured_processes({.environment_assignment = "JOULEMAP_RECORDING_ID=abc"}, proc_.path());
  proc_.add(700, {.environment = "HOME=/\0JOULEMAP_RECORDING_ID=abc\0"s});
  proc_.add(701, {.environment = "JOULEMAP_RECORDING_ID=abcd\0"s});
  EXPECT_TRUE(measured_processes.contains(700));
  EXPECT_FALSE(measured_processes.contains(701));
}

TEST_F(MeasuredProcesses, ProcessesThatHaveJoinedTheRecordingAreMeasured) {
  MeasuredProcessSet measured_processes({.recording_folder = "/runs/a.joule.d"}, proc_.path());
  proc_.add(700, {.files = {"/dev/null", "/runs/a.joule.d/boot-12-34.joule"}});
  proc_.add(701, {.files = {"/runs/a.joule.data"}});
  proc_.add(702, {.are_files_hidden = true});
  EXPECT_TRUE(measured_processes.contains(700));
  EXPECT_FALSE(measured_processes.contains(701));
  EXPECT_FALSE(measured_processes.contains(702));
}

}  // namespace
}  // namespace joulemap::sensors
