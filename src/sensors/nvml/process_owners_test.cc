// SPDX-License-Identifier: Apache-2.0
#include "sensors/nvml/process_owners.h"

#include <gtest/gtest.h>

#include "support/fake_proc.h"

namespace joulemap::sensors::nvml {
namespace {

constexpr pid_t kProgram = 40;
constexpr pid_t kRecorder = 50;
const std::vector<std::string> kCuda = {"/dev/nvidiactl", "/dev/nvidia-uvm"};
const std::vector<std::string> kNoCuda = {"/dev/nvidiactl", "/dev/nvidia0"};

using Owners = std::vector<Owner>;
constexpr Owner ours = Owner::ours;
constexpr Owner another = Owner::another;
constexpr Owner unknown = Owner::unknown;

class OwnersOfProcesses : public testing::Test {
 protected:
  OwnersOfProcesses() { proc_.add(1, {.parent = 0}); }

  void add_recorder(bool is_first_namespace) {
    proc_.add(kRecorder, {.files = kNoCuda});
    proc_.set_self(kRecorder, is_first_namespace);
  }
  ProcessOwners owners(const std::vector<unsigned>& listed, std::vector<pid_t> roots = {}) {
    return {OwnProcesses({.roots = std::move(roots)}, proc_.path()), listed};
  }
  static Owners judge(ProcessOwners& owners, const std::vector<unsigned>& listed) {
    Owners judged(listed.size());
    owners.judge(listed, judged);
    return judged;
  }
  FakeProc proc_;
};

TEST_F(OwnersOfProcesses, AreKnownByNumberOutsideOfContainers) {
  add_recorder(true);
  proc_.add(kProgram, {.files = kCuda});
  proc_.add(41, {.parent = kProgram});
  ProcessOwners attached = owners({kProgram, 60}, {kProgram});
  EXPECT_EQ(judge(attached, {kProgram, 41, 60, 0}), (Owners{ours, ours, another, unknown}));
}

TEST_F(OwnersOfProcesses, OfADriverThatTranslatesNumbersAreKnownInAContainer) {
  add_recorder(false);
  proc_.add(kProgram, {.files = kCuda});
  proc_.add(60, {.files = kCuda});
  ProcessOwners attached = owners({kProgram, 60}, {kProgram});
  EXPECT_EQ(judge(attached, {kProgram, 60}), (Owners{ours, another}));
}

TEST_F(OwnersOfProcesses, OfTheHostsNumbersAreOthersWhereTheyWereThereBeforeTheCommand) {
  add_recorder(false);
  ProcessOwners recording = owners({70001});
  EXPECT_EQ(judge(recording, {70001}), (Owners{another}));
  proc_.add(51, {.parent = kRecorder, .files = kCuda});
  EXPECT_EQ(judge(recording, {70001, 70002}), (Owners{another, ours}));
  EXPECT_EQ(judge(recording, {70001, 70002, 70003}), (Owners{another, unknown, unknown}));
}

TEST_F(OwnersOfProcesses, OfTheHostsNumbersAreOursWhereOnlyOursCanBeMeant) {
  add_recorder(false);
  proc_.add(kProgram, {.files = kCuda});
  ProcessOwners attached = owners({70001}, {kProgram});
  EXPECT_EQ(judge(attached, {70001}), (Owners{ours}));
  EXPECT_EQ(judge(attached, {70001, 70002}), (Owners{unknown, unknown}));
}

TEST_F(OwnersOfProcesses, AreNotFoundByANumberThatNamesAProcessWithoutCudaByChance) {
  add_recorder(false);
  proc_.add(kProgram, {.files = kCuda});
  proc_.add(60, {.files = kNoCuda});
  ProcessOwners attached = owners({60}, {kProgram});
  EXPECT_EQ(judge(attached, {60}), (Owners{ours}));
}

TEST_F(OwnersOfProcesses, OfRanksAreOursOnEachGpu) {
  add_recorder(false);
  for (const pid_t rank : {51, 52}) proc_.add(rank, {.parent = kRecorder, .files = kCuda});
  ProcessOwners recording = owners({});
  EXPECT_EQ(judge(recording, {70001}), (Owners{ours}));
  EXPECT_EQ(judge(recording, {70001, 70002}), (Owners{ours, ours}));
}

TEST_F(OwnersOfProcesses, AreNotHiddenByWorkersThatInheritedTheDeviceFile) {
  add_recorder(false);
  proc_.add(kProgram, {.files = kCuda, .arguments = 7000});
  proc_.add(41, {.parent = kProgram, .files = kCuda, .arguments = 7000});
  ProcessOwners attached = owners({70001, 70002}, {kProgram});
  EXPECT_EQ(judge(attached, {70001, 70002}), (Owners{unknown, unknown}));
  proc_.add(41, {.parent = kProgram, .files = kCuda, .arguments = 8000});  // a program of its own
  EXPECT_EQ(judge(attached, {70001, 70002}), (Owners{ours, ours}));
}

TEST_F(OwnersOfProcesses, AreFoundByTheNumberOfTheirOwnNamespaceWhereProcIsAnOuterOne) {
  add_recorder(false);
  proc_.add(kProgram, {.files = kCuda, .namespace_numbers = {kProgram, 7}});
  ProcessOwners attached = owners({7}, {kProgram});
  EXPECT_EQ(judge(attached, {7}), (Owners{ours}));
}

TEST_F(OwnersOfProcesses, WithoutNumbersAreOursOrUnknownAndNeverOthers) {
  add_recorder(false);
  ProcessOwners recording = owners({0});
  EXPECT_EQ(judge(recording, {0}), (Owners{unknown}));
  proc_.add(51, {.parent = kRecorder, .files = kCuda});
  EXPECT_EQ(judge(recording, {0}), (Owners{ours}));
  EXPECT_EQ(judge(recording, {0, 0}), (Owners{unknown, unknown}));
}

TEST_F(OwnersOfProcesses, AreNotOthersWhereOurOwnFilesMayNotBeRead) {
  add_recorder(false);
  proc_.add(kProgram, {.hides_files = true});
  ProcessOwners attached = owners({70001}, {kProgram});
  EXPECT_EQ(attached.uses_cuda(), std::nullopt);
  EXPECT_EQ(judge(attached, {70001}), (Owners{unknown}));
}

TEST_F(OwnersOfProcesses, OfAnMpsServerAreThoseOfItsClients) {
  for (const bool is_first_namespace : {true, false}) {
    FakeProc proc;
    proc.add(kRecorder, {.files = kNoCuda});
    proc.set_self(kRecorder, is_first_namespace);
    proc.add(kProgram, {.files = kCuda});
    proc.add(60, {.files = kCuda});
    proc.add(90, {.name = "nvidia-cuda-mps-server", .files = kCuda});
    ProcessOwners attached(OwnProcesses({.roots = {kProgram}}, proc.path()), std::vector<unsigned>{kProgram, 90});
    EXPECT_EQ(judge(attached, {kProgram, 90}), (Owners{ours, ours}));
    EXPECT_EQ(judge(attached, {kProgram, 60, 90}), (Owners{ours, another, unknown}));
  }
}

}  // namespace
}  // namespace joulemap::sensors::nvml
