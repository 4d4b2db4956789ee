// SPDX-License-Identifier: Apache-2.0
#include "sensors/nvml/process_classifier.h"

#include <gtest/gtest.h>

#include "support/fake_proc.h"

namespace joulemap::sensors::nvml {
namespace {

constexpr pid_t kProgramPid = 40;
constexpr pid_t kRecorderPid = 50;
const std::vector<std::string> kCudaFiles = {"/dev/nvidiactl", "/dev/nvidia-uvm"};
const std::vector<std::string> kNonCudaFiles = {"/dev/nvidiactl", "/dev/nvidia0"};

using ProcessOwners = std::vector<ProcessOwner>;
constexpr ProcessOwner measured = ProcessOwner::measured;
constexpr ProcessOwner other = ProcessOwner::other;
constexpr ProcessOwner unknown = ProcessOwner::unknown;

class ProcessClassifierTest : public testing::Test {
 protected:
  ProcessClassifierTest() { proc_.add(1, {.parent = 0}); }

  void add_recorder(bool is_initial_pid_namespace) {
    proc_.add(kRecorderPid, {.files = kNonCudaFiles});
    proc_.set_self(kRecorderPid, is_initial_pid_namespace);
  }
  ProcessClassifier owners(const std::vector<unsigned>& listed_pids, std::vector<pid_t> roots = {}) {
    return {MeasuredProcessSet({.root_pids = std::move(roots)}, proc_.path()), listed_pids};
  }
  static ProcessOwners classify(ProcessClassifier& owners, const std::vector<unsigned>& listed_pids) {
    ProcessOwners classified_owners(listed_pids.size());
    owners.classify(listed_pids, classified_owners);
    return classified_owners;
  }
  FakeProc proc_;
};

TEST_F(ProcessClassifierTest, IdentifiesByPidOutsideOfContainers) {
  add_recorder(true);
  proc_.add(kProgramPid, {.files = kCudaFiles});
  proc_.add(41, {.parent = kProgramPid});
  ProcessClassifier classifier = owners({kProgramPid, 60}, {kProgramPid});
  EXPECT_EQ(classify(classifier, {kProgramPid, 41, 60, 0}), (ProcessOwners{measured, measured, other, unknown}));
}

TEST_F(ProcessClassifierTest, IdentifiesTranslatedPidsInAContainer) {
  add_recorder(false);
  proc_.add(kProgramPid, {.files = kCudaFiles});
  proc_.add(60, {.files = kCudaFiles});
  ProcessClassifier classifier = owners({kProgramPid, 60}, {kProgramPid});
  EXPECT_EQ(classify(classifier, {kProgramPid, 60}), (ProcessOwners{measured, other}));
}

TEST_F(ProcessClassifierTest, HostPidsFromBeforeTheCommandAreOtherProcesses) {
  add_recorder(false);
  ProcessClassifier recording = owners({70001});
  EXPECT_EQ(classify(recording, {70001}), (ProcessOwners{other}));
  proc_.add(51, {.parent = kRecorderPid, .files = kCudaFiles});
  EXPECT_EQ(classify(recording, {70001, 70002}), (ProcessOwners{other, measured}));
  EXPECT_EQ(classify(recording, {70001, 70002, 70003}), (ProcessOwners{other, unknown, unknown}));
}

TEST_F(ProcessClassifierTest, HostPidsAreMeasuredWhenUnambiguous) {
  add_recorder(false);
  proc_.add(kProgramPid, {.files = kCudaFiles});
  ProcessClassifier classifier = owners({70001}, {kProgramPid});
  EXPECT_EQ(classify(classifier, {70001}), (ProcessOwners{measured}));
  EXPECT_EQ(classify(classifier, {70001, 70002}), (ProcessOwners{unknown, unknown}));
}

TEST_F(ProcessClassifierTest, IgnoresAPidCollisionWithAProcessWithoutCuda) {
  add_recorder(false);
  proc_.add(kProgramPid, {.files = kCudaFiles});
  proc_.add(60, {.files = kNonCudaFiles});
  ProcessClassifier classifier = owners({60}, {kProgramPid});
  EXPECT_EQ(classify(classifier, {60}), (ProcessOwners{measured}));
}

TEST_F(ProcessClassifierTest, RanksAreMeasuredOnEachGpu) {
  add_recorder(false);
  for (const pid_t rank : {51, 52}) proc_.add(rank, {.parent = kRecorderPid, .files = kCudaFiles});
  ProcessClassifier recording = owners({});
  EXPECT_EQ(classify(recording, {70001}), (ProcessOwners{measured}));
  EXPECT_EQ(classify(recording, {70001, 70002}), (ProcessOwners{measured, measured}));
}

TEST_F(ProcessClassifierTest, ToleratesWorkersThatInheritedTheDeviceFile) {
  add_recorder(false);
  proc_.add(kProgramPid, {.files = kCudaFiles, .arguments = 7000});
  proc_.add(41, {.parent = kProgramPid, .files = kCudaFiles, .arguments = 7000});
  ProcessClassifier classifier = owners({70001, 70002}, {kProgramPid});
  EXPECT_EQ(classify(classifier, {70001, 70002}), (ProcessOwners{unknown, unknown}));
  proc_.add(41, {.parent = kProgramPid, .files = kCudaFiles, .arguments = 8000});  // has called exec since the fork
  EXPECT_EQ(classify(classifier, {70001, 70002}), (ProcessOwners{measured, measured}));
}

TEST_F(ProcessClassifierTest, IdentifiesByNamespacePidWithAnOuterProc) {
  add_recorder(false);
  proc_.add(kProgramPid, {.files = kCudaFiles, .namespace_numbers = {kProgramPid, 7}});
  ProcessClassifier classifier = owners({7}, {kProgramPid});
  EXPECT_EQ(classify(classifier, {7}), (ProcessOwners{measured}));
}

TEST_F(ProcessClassifierTest, ProcessesWithoutAPidAreMeasuredOrUnknown) {
  add_recorder(false);
  ProcessClassifier recording = owners({0});
  EXPECT_EQ(classify(recording, {0}), (ProcessOwners{unknown}));
  proc_.add(51, {.parent = kRecorderPid, .files = kCudaFiles});
  EXPECT_EQ(classify(recording, {0}), (ProcessOwners{measured}));
  EXPECT_EQ(classify(recording, {0, 0}), (ProcessOwners{unknown, unknown}));
}

TEST_F(ProcessClassifierTest, TheOwnerIsUnknownWhenMeasuredFilesAreUnreadable) {
  add_recorder(false);
  proc_.add(kProgramPid, {.are_files_hidden = true});
  ProcessClassifier classifier = owners({70001}, {kProgramPid});
  EXPECT_EQ(classifier.uses_cuda(), std::nullopt);
  EXPECT_EQ(classify(classifier, {70001}), (ProcessOwners{unknown}));
}

TEST_F(ProcessClassifierTest, AnMpsServerBelongsToItsClients) {
  for (const bool is_initial_pid_namespace : {true, false}) {
    FakeProc proc;
    proc.add(kRecorderPid, {.files = kNonCudaFiles});
    proc.set_self(kRecorderPid, is_initial_pid_namespace);
    proc.add(kProgramPid, {.files = kCudaFiles});
    proc.add(60, {.files = kCudaFiles});
    proc.add(90, {.name = "nvidia-cuda-mps-server", .files = kCudaFiles});
    ProcessClassifier classifier(MeasuredProcessSet({.root_pids = {kProgramPid}}, proc.path()),
                                 std::vector<unsigned>{kProgramPid, 90});
    EXPECT_EQ(classify(classifier, {kProgramPid, 90}), (ProcessOwners{measured, measured}));
    EXPECT_EQ(classify(classifier, {kProgramPid, 60, 90}), (ProcessOwners{measured, other, unknown}));
  }
}

}  // namespace
}  // namespace joulemap::sensors::nvml
