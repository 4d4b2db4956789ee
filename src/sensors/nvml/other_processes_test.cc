// SPDX-License-Identifier: Apache-2.0
//
// Against the fake NVML of tests/fake_nvml, which follows a script.
#include "sensors/nvml/other_processes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "support/temporary_directory.h"

namespace joulemap::sensors::nvml {
namespace {

constexpr unsigned kOther = 0x3FFF'FFF0;  // no process has such a number

class OtherProcessesOfAGpu : public testing::Test {
 protected:
  ~OtherProcessesOfAGpu() override { ::unsetenv("JOULEMAP_FAKE_NVML"); }

  NvmlDevice gpu(const std::string& statements) {
    const std::string script = "device GPU-1\n" + statements;
    ::setenv("JOULEMAP_FAKE_NVML", directory_.write("script", script).c_str(), 1);
    auto library = NvmlLibrary::load(JOULEMAP_FAKE_NVML_LIBRARY);
    Device handle = nullptr;
    EXPECT_EQ((*library)->api().device_by_index(0, &handle), Return::success);
    return {*library, handle, 0};
  }

 private:
  TemporaryDirectory directory_;
};

TEST_F(OtherProcessesOfAGpu, UseNothingWhereThereAreNone) {
  const NvmlDevice device = gpu("");
  OtherProcesses others = find_other_processes(device).value();
  EXPECT_TRUE(others.before().empty());
  EXPECT_FALSE(describe(others, "gpu0", device));
  const std::optional<RawRead> read = OtherProcesses({}, true).read_utilization(device);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->status, Return::success);
  EXPECT_EQ(read->raw, 0u);
}

TEST_F(OtherProcessesOfAGpu, AreAddedUpToAllOfItsTimeAtMost) {
  const NvmlDevice device = gpu(fmt::format("process {} 40\nprocess {} 25\n", kOther, kOther + 1));
  OtherProcesses others = find_other_processes(device).value();
  EXPECT_EQ(others.before(), (std::vector<unsigned>{kOther, kOther + 1}));
  EXPECT_EQ(others.read_utilization(device)->raw, 65u);
  const NvmlDevice crowded = gpu(fmt::format("process {} 80\nprocess {} 75\n", kOther, kOther + 1));
  EXPECT_EQ(find_other_processes(crowded)->read_utilization(crowded)->raw, 100u);
}

TEST_F(OtherProcessesOfAGpu, AreNotThisProcessNorItsOwn) {
  const NvmlDevice device = gpu(fmt::format("process {} 40\nprocess {} 25\n", ::getpid(), kOther));
  OtherProcesses others({}, true);
  EXPECT_FALSE(others.is_other(static_cast<unsigned>(::getpid())));
  EXPECT_TRUE(others.is_other(static_cast<unsigned>(::getppid())));
  EXPECT_FALSE(others.is_other(0));  // where NVML does not say who it is
  EXPECT_EQ(others.read_utilization(device)->raw, 25u);
}

TEST_F(OtherProcessesOfAGpu, AreThoseOfBeforeWhereNumbersMeanNothing) {
  const NvmlDevice device = gpu(fmt::format("process {} 40\nprocess {} 25\n", kOther, kOther + 1));
  OtherProcesses others({kOther}, false);
  EXPECT_EQ(others.read_utilization(device)->raw, 40u);  // the one who came later may be the command's
}

TEST_F(OtherProcessesOfAGpu, AreToldEvenWhereTheirUseIsNot) {
  for (const char* what : {"denied process_utilization\n", "unsupported process_utilization\n"}) {
    const NvmlDevice device = gpu(fmt::format("process {} 40\n{}", kOther, what));
    OtherProcesses others = find_other_processes(device).value();
    EXPECT_EQ(describe(others, "gpu0", device)->code, "gpu_shared_untold");
    const std::optional<RawRead> read = others.read_utilization(device);
    ASSERT_TRUE(read);
    EXPECT_NE(read->status, Return::success);
  }
}

TEST_F(OtherProcessesOfAGpu, AreNotGuessedWhereNobodyIsListed) {
  const NvmlDevice closed = gpu(fmt::format("process {} 40\ndenied processes process_utilization\n", kOther));
  EXPECT_FALSE(find_other_processes(closed));
  EXPECT_FALSE(OtherProcesses({}, true).read_utilization(closed));
  EXPECT_FALSE(OtherProcesses({}, false).read_utilization(gpu(fmt::format("process {} 40\n", kOther))));
}

}  // namespace
}  // namespace joulemap::sensors::nvml
