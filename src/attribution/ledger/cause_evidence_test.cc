// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/cause_evidence.h"

#include <gtest/gtest.h>

#include "attribution/ledger/ledger.h"
#include "base/clock.h"
#include "model/background_row.h"

namespace joulemap::attribution {
namespace {

constexpr TimeSpan kSpan{0, 10 * kNanosecondsPerSecond};
constexpr std::uint32_t kProcess = 3;

TimeCurve make_constant_rate_curve(double curve_total) {
  TimeCurve curve(kSpan, cell_count_for_span(kSpan));
  curve.add(kSpan.begin_ns, kSpan.end_ns, curve_total);
  curve.finish();
  return curve;
}

// A thread's tally in a scope: wall time, and CPU time within it.
ScopeTally host(std::uint32_t scope, double wall_s, double cpu_s, std::uint64_t count = 1) {
  return {scope, count, count, static_cast<std::int64_t>(wall_s * 1e9), static_cast<std::int64_t>(cpu_s * 1e9), 0};
}

KernelTally gpu(std::uint32_t class_id, std::uint32_t scope, std::uint64_t count, double time_s) {
  return {class_id, 0, scope, count, static_cast<std::int64_t>(time_s * 1e9)};
}

enum ScopeId : std::uint32_t { kConv = 4, kTensorItem, kAugment, kTo, kSynchronize };
enum KernelClassId : std::uint32_t { kGemm, kHtoD, kDtoH, kCopyKernel, kNccl };

Activity training() {
  Activity activity;
  activity.scopes = {{1, 0, ScopeKind::mode, "train"},
                     {2, 1, ScopeKind::phase, "forward"},
                     {3, 2, ScopeKind::module, "net"},
                     {kConv, 3, ScopeKind::op, "torch.conv2d"},
                     {kTensorItem, 3, ScopeKind::op, "torch.Tensor.item"},
                     {kAugment, 3, ScopeKind::op, "augment"},
                     {kTo, 3, ScopeKind::op, "torch.Tensor.to"},
                     {kSynchronize, 3, ScopeKind::op, "torch.cuda.synchronize"}};
  activity.classes = {
      {kGemm, KernelKind::kernel, "_Z4gemmv", {}, {}},
      {kHtoD, KernelKind::copy, "HtoD", {}, {}},
      {kDtoH, KernelKind::copy, "DtoH", {}, {}},
      {kCopyKernel, KernelKind::kernel, "void at::native::elementwise_kernel<direct_copy_kernel_cuda>(int)", {}, {}},
      {kNccl, KernelKind::kernel, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", {}, {}}};
  activity.queues = {{0, "GPU-1", 0, 1, 7}};
  activity.begin_ns = kSpan.begin_ns;
  activity.end_ns = kSpan.end_ns;
  return activity;
}

class LedgerCauses {
 public:
  explicit LedgerCauses(const Activity& activity, RowLevel level = RowLevel::function, bool has_gpu = true,
                        bool is_recorded = true) {
    MachineEnergy energy{.cpu_energy_j = make_constant_rate_curve(100)};
    energy.has_sampled_operations = is_recorded;
    if (has_gpu) energy.gpus.emplace("GPU-1", MachineEnergy::Gpu{"gpu0", make_constant_rate_curve(1000)});
    ActivitySums sums(kSpan);
    sums.add(kProcess, activity);
    sums.finish();
    Ledger ledger(level, energy, sums);
    ledger.add(kProcess, activity);
    rows_ = ledger.finish().rows;
    for (const ReportRow& row : rows_) {
      EXPECT_NEAR(row.cause ? row.cause->times_s.sum() : row.time_s, row.time_s, 1e-9) << row.name;
    }
  }
  EnergyCause of(std::string_view name, std::string_view device = "cpu") const {
    for (const ReportRow& row : rows_) {
      if (row.name == name && row.device == device && row.cause) return *row.cause;
    }
    ADD_FAILURE() << "no cause of " << name << " on " << device;
    return {};
  }
  const std::vector<ReportRow>& rows() const { return rows_; }

 private:
  std::vector<ReportRow> rows_;
};

TEST(CauseEvidence, ClassifiesGpuTimeByItsKernels) {
  Activity activity = training();
  activity.kernel_tallies = {gpu(kGemm, kConv, 10, 3), gpu(kHtoD, kConv, 5, 1), gpu(kCopyKernel, kTo, 5, 2),
                             gpu(kNccl, kAugment, 1, 1)};
  const LedgerCauses causes(activity);
  EXPECT_EQ(causes.of("torch.conv2d", "gpu0").largest_class, EnergyCauseClass::compute);
  EXPECT_NEAR(causes.of("torch.conv2d", "gpu0").times_s[EnergyCauseClass::memory], 1, 1e-9);
  EXPECT_EQ(causes.of("torch.Tensor.to", "gpu0").largest_class, EnergyCauseClass::memory);
  EXPECT_EQ(causes.of("augment", "gpu0").largest_class, EnergyCauseClass::synchronization);
  EXPECT_EQ(causes.of("augment", "gpu0").basis, CauseBasis::ledger);
  const LedgerCauses by_kernel(activity, RowLevel::kernel);
  EXPECT_EQ(by_kernel.of("HtoD", "gpu0").largest_class, EnergyCauseClass::memory);
  EXPECT_EQ(by_kernel.of("_Z4gemmv", "gpu0").largest_class, EnergyCauseClass::compute);
}

TEST(CauseEvidence, AThreadThatSubmitsKernelsLaunches) {
  Activity activity = training();
  activity.scope_tallies = {host(kConv, 2, 1.75)};
  activity.kernel_tallies = {gpu(kGemm, kConv, 1000, 3)};
  const EnergyCause cause = LedgerCauses(activity).of("torch.conv2d");
  EXPECT_EQ(cause.largest_class, EnergyCauseClass::launch);
  EXPECT_EQ(cause.basis, CauseBasis::ledger);
  EXPECT_NEAR(cause.times_s[EnergyCauseClass::launch], 1.75, 1e-9);
  EXPECT_NEAR(cause.times_s[EnergyCauseClass::synchronization], 0.25, 1e-9);
}

TEST(CauseEvidence, AThreadThatSpinsForItsCopyWaits) {
  Activity activity = training();
  // A launch takes 1 ms; reading a number back takes 100 ms.
  activity.scope_tallies = {host(kConv, 1, 1), host(kTensorItem, 2, 2)};
  activity.kernel_tallies = {gpu(kGemm, kConv, 1000, 3), gpu(kDtoH, kTensorItem, 20, 0.001)};
  const EnergyCause cause = LedgerCauses(activity).of("torch.Tensor.item");
  EXPECT_EQ(cause.largest_class, EnergyCauseClass::synchronization);
  EXPECT_EQ(cause.basis, CauseBasis::ledger);
  EXPECT_NEAR(cause.times_s[EnergyCauseClass::launch], 0.02, 1e-9);
}

TEST(CauseEvidence, AThreadWithSlowCopySubmissionMovesMemory) {
  Activity activity = training();
  activity.scope_tallies = {host(kConv, 1, 1), host(kTo, 2, 2)};
  activity.kernel_tallies = {gpu(kGemm, kConv, 1000, 3), gpu(kHtoD, kTo, 20, 0.5)};
  const LedgerCauses causes(activity);
  EXPECT_EQ(causes.of("torch.Tensor.to").largest_class, EnergyCauseClass::memory);
  EXPECT_EQ(causes.of("torch.conv2d").largest_class, EnergyCauseClass::launch);
}

TEST(CauseEvidence, ABlockedThreadWaitsWhateverItsName) {
  Activity activity = training();
  activity.scope_tallies = {host(kAugment, 2, 0.5)};
  const EnergyCause cause = LedgerCauses(activity, RowLevel::function, false).of("augment");
  EXPECT_EQ(cause.largest_class, EnergyCauseClass::synchronization);
  EXPECT_EQ(cause.basis, CauseBasis::ledger);
}

TEST(CauseEvidence, AMainThreadWithBusyWorkersDoesNotWait) {
  Activity activity = training();
  ScopeTally tally = host(kAugment, 2, 0.5);
  tally.helper_threads_cpu_ns = 6 * kNanosecondsPerSecond;
  activity.scope_tallies = {tally};
  EXPECT_EQ(LedgerCauses(activity, RowLevel::function, false).of("augment").largest_class, EnergyCauseClass::compute);
}

TEST(CauseEvidence, OnlyTheNameDistinguishesSpinningFromComputing) {
  Activity activity = training();
  activity.scope_tallies = {host(kAugment, 1, 1), host(kSynchronize, 1, 1), host(kConv, 1, 1)};
  activity.kernel_tallies = {gpu(kGemm, kConv, 1000, 3)};
  const LedgerCauses causes(activity);
  EXPECT_EQ(causes.of("torch.cuda.synchronize").largest_class, EnergyCauseClass::synchronization);
  EXPECT_EQ(causes.of("torch.cuda.synchronize").basis, CauseBasis::name);
  EXPECT_EQ(causes.of("augment").largest_class, EnergyCauseClass::compute);
  EXPECT_EQ(causes.of("augment").basis, CauseBasis::ledger);
}

TEST(CauseEvidence, WithoutGpuTracingNamesClassifyCpuTime) {
  Activity activity = training();
  activity.scope_tallies = {host(kConv, 1, 1)};
  EXPECT_EQ(LedgerCauses(activity).of("torch.conv2d").basis, CauseBasis::name);
  EXPECT_EQ(LedgerCauses(activity, RowLevel::function, false).of("torch.conv2d").basis, CauseBasis::ledger);
}

TEST(CauseEvidence, ImportedTracesHaveNoCpuTimeSoNamesClassifyWaiting) {
  Activity activity = training();
  activity.scope_tallies = {host(kConv, 1, 1), host(kAugment, 1, 1)};
  activity.kernel_tallies = {gpu(kGemm, kConv, 1000, 3)};
  const LedgerCauses causes(activity, RowLevel::function, true, false);
  EXPECT_EQ(causes.of("augment").basis, CauseBasis::name);
  EXPECT_EQ(causes.of("torch.conv2d").largest_class, EnergyCauseClass::launch);
  EXPECT_EQ(causes.of("torch.conv2d").basis, CauseBasis::ledger);
}

TEST(CauseEvidence, NamesClassifySampledFunctions) {
  Activity activity = training();
  activity.scopes.push_back({20, 2, ScopeKind::function, "torch.cuda.synchronize"});
  activity.scopes.push_back({21, 2, ScopeKind::function, "init_weights"});
  activity.scope_tallies = {host(2, 4, 1)};
  activity.shares = {{2, 20, 30, 3000}, {2, 21, 10, 1000}};
  const LedgerCauses causes(activity, RowLevel::function, false);
  EXPECT_EQ(causes.of("torch.cuda.synchronize").largest_class, EnergyCauseClass::synchronization);
  EXPECT_EQ(causes.of("init_weights").largest_class, EnergyCauseClass::compute)
      << "its place waited, not itself perhaps";
  EXPECT_EQ(causes.of("init_weights").basis, CauseBasis::name);
}

TEST(CauseEvidence, UncapturedTimeHasNoCause) {
  MachineEnergy energy{.cpu_energy_j = make_constant_rate_curve(1000)};
  energy.machine_cpu_s = make_constant_rate_curve(20);
  energy.command_cpu_s = 1;
  Activity activity = training();
  activity.scope_tallies = {host(kConv, 1, 1)};
  ActivitySums sums(kSpan);
  sums.add(kProcess, activity);
  sums.finish();
  Ledger ledger(RowLevel::function, energy, sums);
  ledger.add(kProcess, activity);
  bool has_background = false;
  for (const ReportRow& row : ledger.finish().rows) {
    if (row.name != kBackgroundRowName) continue;
    has_background = true;
    EXPECT_FALSE(row.cause);
  }
  EXPECT_TRUE(has_background);
}

}  // namespace
}  // namespace joulemap::attribution
