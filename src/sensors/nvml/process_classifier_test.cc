// SPDX-License-Identifier: Apache-2.0
#include "sensors/nvml/process_classifier.h"

#include <gtest/gtest.h>

#include "support/fake_proc.h"

namespace joulemap::sensors::nvml {
namespace {

constexpr pid_t kProgramPid = 40;
constexpr pid_t kRecorder = 50;
const std::vector<std::string> kCuda = {"/dev/nvidiactl", "/dev/nvidia-uvm"};
const std::vector<std::string> kNoCuda = {"/dev/nvidiactl", "/dev/nvidia0"};

using Owners = std::vector<ProcessOwner>;
constexpr ProcessOwner measured = ProcessOwner::measured;
constexpr ProcessOwner other = ProcessOwner::other;
constexpr ProcessOwner unknown = ProcessOwner::unknown;

class ProcessClassifierTest : public testing::Test {
 protected:
  ProcessClassifierTest() { proc_.add(1, {.parent = 0}); }

  void add_recorder(bool is_initial_pid_namespace) {
    proc_.add(kRecorder, {.files = kNoCuda});
    proc_.set_self(kRecorder, is_initial_pid_namespace);
  }
  ProcessClassifier owners(const std::vector<unsigned>& listed, std::vector<pid_t> roots = {}) {
    return {MeasuredProcessSet({.root_pids = std::move(roots)}, proc_.path()), listed};
  }
  static Owners classify(ProcessClassifier& owners, const std::vector<unsigned>& listed) {
    Owners judged(listed.size());
    owners.classify(listed, judged);
    return judged;
  }
  FakeProc proc_;
};

TEST_F(ProcessClassifierTest, IdentifiesByPidOutsideOfContainers) {
  add_recorder(true);
  proc_.add(kProgramPid, {.files = kCuda});
  proc_.add(41, {.parent = kProgramPid});
  ProcessClassifier attached = owners({kProgramPid, 60}, {kProgramPid});
  EXPECT_EQ(classify(attached, {kProgramPid, 41, 60, 0}), (Owners{measured, measured, other, unknown}));
}

TEST_F(ProcessClassifierTest, IdentifiesTranslatedPidsInAContainer) {
  add_recorder(false);
  proc_.add(kProgramPid, {.files = kCuda});
  proc_.add(60, {.files = kCuda});
  ProcessClassifier attached = owners({kProgramPid, 60}, {kProgramPid});
  EXPECT_EQ(classify(attached, {kProgramPid, 60}), (Owners{measured, other}));
}

TEST_F(ProcessClassifierTest, HostPidsFromBeforeTheCommandAreOtherProcesses) {
  add_recorder(false);
  ProcessClassifier recording = owners({70001});
  EXPECT_EQ(classify(recording, {70001}), (Owners{other}));
  proc_.add(51, {.parent = kRecorder, .files = kCuda});
  EXPECT_EQ(classify(recording, {70001, 70002}), (Owners{other, measured}));
  EXPECT_EQ(classify(recording, {70001, 70002, 70003}), (Owners{other, unknown, unknown}));
}

TEST_F(ProcessClassifierTest, HostPidsAreMeasuredWhenUnambiguous) {
  add_recorder(false);
  proc_.add(kProgramPid, {.files = kCuda});
  ProcessClassifier attached = owners({70001}, {kProgramPid});
  EXPECT_EQ(classify(attached, {70001}), (Owners{measured}));
  EXPECT_EQ(classify(attached, {70001, 70002}), (Owners{unknown, unknown}));
}

TEST_F(ProcessClassifierTest, IgnoresAPidCollisionWithAProcessWithoutCuda) {
  add_recorder(false);
  proc_.add(kProgramPid, {.files = kCuda});
  proc_.add(60, {.files = kNoCuda});
  ProcessClassifier attached = owners({60}, {kProgramPid});
  EXPECT_EQ(classify(attached, {60}), (Owners{measured}));
}

TEST_F(ProcessClassifierTest, RanksAreMeasuredOnEachGpu) {
  add_recorder(false);
  for (const pid_t rank : {51, 52}) proc_.add(rank, {.parent = kRecorder, .files = kCuda});
  ProcessClassifier recording = owners({});
  EXPECT_EQ(classify(recording, {70001}), (Owners{measured}));
  EXPECT_EQ(classify(recording, {70001, 70002}), (Owners{measured, measured}));
}

TEST_F(ProcessClassifierTest, ToleratesWorkersThatInheritedTheDeviceFile) {
  add_recorder(false);
  proc_.add(kProgramPid, {.files = kCuda, .arguments = 7000});
  proc_.add(41, {.parent = kProgramPid, .files = kCuda, .arguments = 7000});
  ProcessClassifier attached = owners({70001, 70002}, {kProgramPid});
  EXPECT_EQ(classify(attached, {70001, 70002}), (Owners{unknown, unknown}));
  proc_.add(41, {.parent = kProgramPid, .files = kCuda, .arguments = 8000});  // has called exec since the fork
  EXPECT_EQ(classify(attached, {70001, 70002}), (Owners{measured, measured}));
}

TEST_F(ProcessClassifierTest, IdentifiesByNamespacePidWithAnOuterProc) {
  add_recorder(false);
  proc_.add(kProgramPid, {.files = kCuda, .namespace_numbers = {kProgramPid, 7}});
  ProcessClassifier attached = owners({7}, {kProgramPid});
  EXPECT_EQ(classify(attached, {7}), (Owners{measured}));
}

TEST_F(ProcessClassifierTest, ProcessesWithoutAPidAreMeasuredOrUnknown) {
  add_recorder(false);
  ProcessClassifier recording = owners({0});
  EXPECT_EQ(classify(recording, {0}), (Owners{unknown}));
  proc_.add(51, {.parent = kRecorder, .files = kCuda});
  EXPECT_EQ(classify(recording, {0}), (Owners{measured}));
  EXPECT_EQ(classify(recording, {0, 0}), (Owners{unknown, unknown}));
}

TEST_F(ProcessClassifierTest, IsUnknownWhenMeasuredFilesAreUnreadable) {
  add_recorder(false);
  proc_.add(kProgramPid, {.hides_files = true});
  ProcessClassifier attached = owners({70001}, {kProgramPid});
  EXPECT_EQ(attached.uses_cuda(), std::nullopt);
  EXPECT_EQ(classify(attached, {70001}), (Owners{unknown}));
}

TEST_F(ProcessClassifierTest, AnMpsServerBelongsToItsClients) {
  for (const bool is_initial_pid_namespace : {true, false}) {
    FakeProc proc;
    proc.add(kRecorder, {.files = kNoCuda});
    proc.set_self(kRecorder, is_initial_pid_namespace);
    proc.add(kProgramPid, {.files = kCuda});
    proc.add(60, {.files = kCuda});
    proc.add(90, {.name = "nvidia-cuda-mps-server", .files = kCuda});
    ProcessClassifier attached(MeasuredProcessSet({.root_pids = {kProgramPid}}, proc.path()),
                               std::vector<unsigned>{kProgramPid, 90});
    EXPECT_EQ(classify(attached, {kProgramPid, 90}), (Owners{measured, measured}));
    EXPECT_EQ(classify(attached, {kProgramPid, 60, 90}), (Owners{measured, other, unknown}));
  }
}

}  // namespace
}  // namespace joulemap::sensors::nvml
