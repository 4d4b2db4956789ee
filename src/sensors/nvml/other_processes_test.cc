// SPDX-License-Identifier: Apache-2.0
//
// Tests with the fake NVML of tests/fake_nvml, which follows a script.
#include "sensors/nvml/other_processes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "support/fake_proc.h"
#include "support/temporary_directory.h"

namespace joulemap::sensors::nvml {
namespace {

constexpr unsigned kImpossiblePid = 0x3FFF'FFF0;  // larger than any pid
constexpr pid_t kMeasuredPid = 40;
const FakeProcess kCudaProcess = {.files = {"/dev/nvidia-uvm"}};

std::size_t count_other_processes(const NvmlDevice& device) {
  return find_other_processes(device, MeasuredProcessSet())->find_processes_of_owner(device, ProcessOwner::other).count;
}

class OtherProcessesTest : public testing::Test {
 protected:
  ~OtherProcessesTest() override { ::unsetenv("JOULEMAP_FAKE_NVML"); }

  NvmlDevice gpu(const std::string& statements) {
    const std::string script = "device GPU-1\n" + statements;
    ::setenv("JOULEMAP_FAKE_NVML", directory_.write("script", script).c_str(), 1);
    auto library = NvmlLibrary::load(JOULEMAP_FAKE_NVML_LIBRARY);
    Device handle = nullptr;
    EXPECT_EQ((*library)->api().device_by_index(0, &handle), NvmlReturn::success);
    return {*library, handle, 0};
  }

  // In a container, where `program` is the measured process.
  OtherProcesses in_container(const NvmlDevice& device, const FakeProcess& program) {
    proc_.add(50);
    proc_.set_self(50, false);
    proc_.add(kMeasuredPid, program);
    return find_other_processes(device, MeasuredProcessSet({.root_pids = {kMeasuredPid}}, proc_.path())).value();
  }

  FakeProc proc_;

 private:
  TemporaryDirectory directory_;
};

TEST_F(OtherProcessesTest, UtilizationIsZeroWithoutOtherProcesses) {
  const NvmlDevice device = gpu("");
  OtherProcesses other_processes = find_other_processes(device, MeasuredProcessSet()).value();
  EXPECT_EQ(count_other_processes(device), 0u);
  EXPECT_TRUE(describe_other_processes(other_processes, "gpu0", device).empty());
  const std::optional<RawReadResult> read = other_processes.read_utilization(device);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->status, NvmlReturn::success);
  EXPECT_EQ(read->raw, 0u);
}

TEST_F(OtherProcessesTest, OtherProcessesAreSummedUpToFullUtilization) {
  const NvmlDevice device = gpu(fmt::format("process {} 40\nprocess {} 25\n", kImpossiblePid, kImpossiblePid + 1));
  OtherProcesses other_processes = find_other_processes(device, MeasuredProcessSet()).value();
  EXPECT_EQ(count_other_processes(device), 2u);
  EXPECT_EQ(other_processes.read_utilization(device)->raw, 65u);
  const NvmlDevice crowded = gpu(fmt::format("process {} 80\nprocess {} 75\n", kImpossiblePid, kImpossiblePid + 1));
  EXPECT_EQ(find_other_processes(crowded, MeasuredProcessSet())->read_utilization(crowded)->raw, 100u);
}

TEST_F(OtherProcessesTest, TheProgramThatStartedTheRecorderIsExcluded) {
  proc_.add(kMeasuredPid, kCudaProcess);
  proc_.add(50, {.parent = kMeasuredPid});
  proc_.set_self(50, true);
  const NvmlDevice device = gpu(fmt::format("process {} 90\nprocess {} 25\n", kMeasuredPid, kImpossiblePid));
  OtherProcesses other_processes =
      find_other_processes(device, MeasuredProcessSet({.root_pids = {kMeasuredPid}}, proc_.path())).value();
  EXPECT_EQ(other_processes.read_utilization(device)->raw, 25u);
  EXPECT_EQ(other_processes.find_processes_of_owner(device, ProcessOwner::other).count, 1u);
}

TEST_F(OtherProcessesTest, MeasuredProcessesAreExcludedByHostPid) {
  const NvmlDevice device = gpu("process 70001 90\n");
  OtherProcesses other_processes = in_container(device, kCudaProcess);
  EXPECT_EQ(other_processes.read_utilization(device)->raw, 0u);
  EXPECT_TRUE(describe_other_processes(other_processes, "gpu0", device).empty());
}

TEST_F(OtherProcessesTest, ProcessesThatCannotBeDistinguishedAreReportedAndNotBackground) {
  const NvmlDevice device = gpu("process 70001 90\nprocess 70002 5\n");
  OtherProcesses other_processes = in_container(device, kCudaProcess);
  EXPECT_NE(other_processes.read_utilization(device)->status, NvmlReturn::success);
  const Diagnostics diagnostics = describe_other_processes(other_processes, "gpu0", device);
  EXPECT_TRUE(diagnostics.contains("gpu_owner_unknown"));
  EXPECT_FALSE(diagnostics.contains("gpu_shared"));
}

TEST_F(OtherProcessesTest, ProcessesThatAContainerDoesNotListAreDetectedByUtilization) {
  const NvmlDevice device = gpu(fmt::format("process {} 50\nunlisted 70002 30\n", kMeasuredPid));
  OtherProcesses other_processes = in_container(device, kCudaProcess);
  EXPECT_EQ(other_processes.read_utilization(device)->raw,
            0u);  // pid 70002 may be a measured process that has just ended
  EXPECT_EQ(other_processes.read_utilization(device)->raw, 30u);
}

TEST_F(OtherProcessesTest, AnUnlistedPidIsNotAssumedToBeAnotherProcess) {
  const NvmlDevice device = gpu("unlisted 70001 90\n");
  OtherProcesses other_processes = in_container(device, kCudaProcess);
  for (int read_index = 0; read_index < 3; ++read_index)
    EXPECT_NE(other_processes.read_utilization(device)->status, NvmlReturn::success);
}

TEST_F(OtherProcessesTest, OtherProcessesAreReportedWithoutUtilization) {
  for (const char* fault_script : {"denied process_utilization\n", "unsupported process_utilization\n"}) {
    const NvmlDevice device = gpu(fmt::format("process {} 40\n{}", kImpossiblePid, fault_script));
    OtherProcesses other_processes = find_other_processes(device, MeasuredProcessSet()).value();
    EXPECT_TRUE(describe_other_processes(other_processes, "gpu0", device).contains("gpu_shared_untold"));
    const std::optional<RawReadResult> read = other_processes.read_utilization(device);
    ASSERT_TRUE(read);
    EXPECT_NE(read->status, NvmlReturn::success);
  }
}

TEST_F(OtherProcessesTest, UtilizationIsUnknownWhenProcessesAreUnreadable) {
  const NvmlDevice readable_device = gpu("");
  OtherProcesses other_processes = find_other_processes(readable_device, MeasuredProcessSet()).value();
  const NvmlDevice unreadable_device =
      gpu(fmt::format("process {} 40\ndenied processes process_utilization\n", kImpossiblePid));
  EXPECT_FALSE(find_other_processes(unreadable_device, MeasuredProcessSet()));
  EXPECT_FALSE(other_processes.read_utilization(unreadable_device));
}

}  // namespace
}  // namespace joulemap::sensors::nvml
