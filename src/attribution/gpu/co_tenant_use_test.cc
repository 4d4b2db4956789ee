// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/co_tenant_use.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "attribution/gpu/gpu_attribution.h"
#include "attribution/gpu/kernel_learning.h"
#include "attribution/ledger/ledger.h"
#include "attribution/ledger/recorded_energy.h"
#include "base/clock.h"
#include "support/simulated_gpu.h"

namespace joulemap::attribution {
namespace {

constexpr TimeSpan kSpan{0, 10 * kNanosecondsPerSecond};
constexpr std::uint32_t kProcess = 3;

Reading make_percent_reading(double time_s, std::uint64_t percent, ReadCode code = ReadCode::ok) {
  const auto time_ns = static_cast<std::int64_t>(time_s * 1e9);
  return {percent, time_ns, time_ns, code};
}

double total_s(const std::vector<BusySlice>& slices) {
  double sum_s = 0;
  for (const BusySlice& slice : slices) sum_s += slice.busy_s;
  return sum_s;
}

TEST(CoTenantUse, EachReadingCoversTheTimeSinceThePreviousOne) {
  CoTenantUse use;
  for (const Reading& reading : {make_percent_reading(-1, 90), make_percent_reading(2, 50), make_percent_reading(4, 0),
                                 make_percent_reading(8, 25)})
    use.add(reading);
  EXPECT_TRUE(use.has_co_tenants());
  const std::vector<BusySlice> slices = use.busy_slices(kSpan);
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_NEAR(slices[0].busy_s, 1, 1e-9);    // 50 % of the first two seconds
  EXPECT_NEAR(slices[1].busy_s, 1, 1e-9);    // from 4 to 8 s
  EXPECT_NEAR(slices[2].busy_s, 0.5, 1e-9);  // the last reading is extrapolated to the end
  EXPECT_NEAR(make_busy_curve(slices, kSpan).total(), 2.5, 1e-6);
}

TEST(CoTenantUse, IsEmptyWithoutReadingsOrCoTenants) {
  EXPECT_TRUE(CoTenantUse().busy_slices(kSpan).empty());
  CoTenantUse use_without_co_tenants;
  use_without_co_tenants.add(make_percent_reading(1, 0));
  use_without_co_tenants.add(make_percent_reading(3, 0));
  EXPECT_TRUE(use_without_co_tenants.busy_slices(kSpan).empty());
  EXPECT_FALSE(use_without_co_tenants.has_co_tenants());
  Diagnostics diagnostics;
  use_without_co_tenants.add_co_tenant_diagnostic("gpu0", diagnostics);
  EXPECT_TRUE(diagnostics.empty());
}

TEST(CoTenantUse, ReportsUnreadableUseWithoutGuessing) {
  CoTenantUse use;
  for (const Reading& reading : {make_percent_reading(0, 0), make_percent_reading(2, 40),
                                 make_percent_reading(4, 0, ReadCode::denied), make_percent_reading(6, 40)})
    use.add(reading);
  EXPECT_NEAR(total_s(use.busy_slices({0, 6 * kNanosecondsPerSecond})), 1.6, 1e-9);
  Diagnostics diagnostics;
  use.add_co_tenant_diagnostic("gpu0", diagnostics);
  EXPECT_TRUE(diagnostics.contains("gpu_shared_untold"));
}

TEST(CoTenantUse, UseOfAKilledRecorderIsNotExtrapolated) {
  CoTenantUse use;
  use.add(make_percent_reading(0, 0));
  use.add(make_percent_reading(1, 100));
  EXPECT_NEAR(total_s(use.busy_slices({0, 100 * kNanosecondsPerSecond})), 1 + 5, 1e-9);
}

TimeCurve make_constant_rate_curve(double curve_total) {
  TimeCurve curve(kSpan, cell_count_for_span(kSpan));
  curve.add(kSpan.begin_ns, kSpan.end_ns, curve_total);
  curve.finish();
  return curve;
}

// A GPU at 300 W for ten seconds, on which kernels of the command run for `measured_s` and those of a co-tenant for
// `co_tenant_s`.
struct CoTenantGpu {
  LedgerResult result;

  CoTenantGpu(double measured_s, double co_tenant_s, RowLevel level = RowLevel::kernel) {
    MachineEnergy energy;
    MachineEnergy::Gpu gpu{"gpu0", make_constant_rate_curve(3000)};
    if (co_tenant_s > 0) gpu.co_tenant_s = make_constant_rate_curve(co_tenant_s);
    energy.gpus.emplace("GPU-1", std::move(gpu));
    Activity activity;
    activity.begin_ns = kSpan.begin_ns;
    activity.end_ns = kSpan.end_ns;
    activity.scopes = {{1, 0, ScopeKind::mode, "train"}};
    activity.classes = {{0, KernelKind::kernel, "gemm", {}, {}}};
    activity.queues = {{0, "GPU-1", 0, 1, 7}};
    if (measured_s > 0) activity.kernel_tallies = {{0, 0, 1, 1, static_cast<std::int64_t>(measured_s * 1e9)}};
    ActivitySums sums(kSpan);
    sums.add(kProcess, activity);
    sums.finish();
    Ledger ledger(level, energy, sums);
    ledger.add(kProcess, activity);
    result = ledger.finish();
    EXPECT_NEAR(*result.attributed_j + *result.idle_j + *result.unattributed_j, 3000, 1e-6);
  }
  const ReportRow* row(const std::string& name) const {
    for (const ReportRow& candidate : result.rows) {
      if (candidate.name == name && candidate.device == "gpu0") return &candidate;
    }
    return nullptr;
  }
  double energy_j(const std::string& name) const {
    const ReportRow* const matching_row = row(name);
    return matching_row != nullptr ? matching_row->energy_j.value_or(-1) : 0;
  }
};

TEST(CoTenantsOnAGpu, GetTheEnergyWhileNoMeasuredProcessRuns) {
  const CoTenantGpu gpu(5, 3);
  EXPECT_NEAR(gpu.energy_j("gemm"), 1500, 1);
  EXPECT_NEAR(gpu.energy_j("background"), 900, 1);
  EXPECT_NEAR(*gpu.result.idle_j, 600, 1);
  EXPECT_NEAR(gpu.row("background")->time_s, 3, 1e-6);
  EXPECT_EQ(gpu.row("background")->basis, kTimeShareBasis);
  EXPECT_EQ(gpu.row("background")->path, std::vector<std::string>{"background"});
}

TEST(CoTenantsOnAGpu, ShareTheEnergyWhileBothRun) {
  const CoTenantGpu gpu(9, 6);
  EXPECT_NEAR(gpu.energy_j("gemm"), 3000 * 9.0 / 15, 1);
  EXPECT_NEAR(gpu.energy_j("background"), 3000 * 6.0 / 15, 1);
  EXPECT_NEAR(*gpu.result.idle_j, 0, 1);
}

TEST(CoTenantsOnAGpu, AreARowAtEveryLevelWithGpuRows) {
  for (const RowLevel level : {RowLevel::phase, RowLevel::layer, RowLevel::op, RowLevel::kernel, RowLevel::region})
    EXPECT_NEAR(CoTenantGpu(5, 3, level).energy_j("background"), 900, 1) << row_level_name(level);
}

TEST(CoTenantsOnAGpu, WithoutCapturedWorkLeaveTheRestUnattributed) {
  const CoTenantGpu gpu(0, 3);
  EXPECT_NEAR(gpu.energy_j("background"), 900, 1);
  // No kernels of the command were captured on that GPU, so the rest of its energy is not necessarily idle.
  EXPECT_NEAR(*gpu.result.idle_j, 0, 1e-9);
  EXPECT_NEAR(*gpu.result.unattributed_j, 2100, 1);
}

TEST(CoTenantsOnAGpu, HaveNoRowWhereThereAreNone) {
  const CoTenantGpu gpu(5, 0);
  EXPECT_EQ(gpu.row("background"), nullptr);
  EXPECT_NEAR(gpu.energy_j("gemm"), 1500, 1);
}

// Kernel kinds from `first_co_tenant_kind` on belong to a co-tenant: their kernels are not recorded, only their busy
// fraction of every two seconds.
LedgerResult attribute_with_co_tenants(const SimulatedRun& run, std::uint32_t first_co_tenant_kind) {
  const TimeSpan span{run.begin_ns, run.end_ns};
  const std::vector<Channel> channels = {SimulatedGpu::channel()};
  RecordedEnergy recorded(channels, span, 10);
  for (const Sample& sample : run.samples) recorded.add(sample);
  const RecordedEnergy::Result energy = recorded.finish();
  SimulatedRun own_process_run = run;
  std::erase_if(own_process_run.kernels,
                [&](const SimulatedKernel& kernel) { return kernel.kind >= first_co_tenant_kind; });
  TimeCurve co_tenant_rate(span, 20'000);
  for (const SimulatedKernel& kernel : run.kernels) {
    const double time_s = static_cast<double>(kernel.end_ns - kernel.start_ns) * 1e-9;
    if (kernel.kind >= first_co_tenant_kind) co_tenant_rate.add(kernel.start_ns, kernel.end_ns, time_s);
  }
  co_tenant_rate.finish();
  CoTenantUse use;
  for (std::int64_t now_ns = span.begin_ns; now_ns < span.end_ns; now_ns += 2 * kNanosecondsPerSecond) {
    const double share = co_tenant_rate.mean_rate(now_ns - 2 * kNanosecondsPerSecond, now_ns);
    use.add(make_percent_reading(static_cast<double>(now_ns) * 1e-9, static_cast<std::uint64_t>(100 * share)));
  }
  ActivitySums sums(span);
  GpuWorkCollector work(span);
  const std::vector<Activity> activities = activities_of(own_process_run);
  for (const Activity& activity : activities) {
    sums.add(kProcess, activity);
    work.add(kProcess, activity);
  }
  sums.finish();
  work.add_co_tenants("GPU-1", use.busy_slices(span));
  std::map<std::string, DeviceWork> work_by_device = work.finish(sums.processes());
  MachineEnergy::Gpu gpu{"gpu0", energy.domain_curves.at(0).energy_j};
  gpu.co_tenant_s = make_busy_curve(use.busy_slices(span), span);
  gpu.powers =
      find_kernel_powers(std::move(work_by_device.at("GPU-1")), {energy.domain_curves[0].counter_updates}, span);
  MachineEnergy machine;
  machine.gpus.emplace("GPU-1", std::move(gpu));
  EXPECT_TRUE(learn_kernel_powers_from_fit(machine, "a GPU").empty());
  Ledger ledger(RowLevel::kernel, machine, sums);
  for (const Activity& activity : activities) ledger.add(kProcess, activity);
  return ledger.finish();
}

// Of nine kernel kinds, those from `first_co_tenant_kind` on belong to the co-tenant.
void expect_intervals_cover(std::uint32_t first_co_tenant_kind) {
  constexpr std::uint64_t kSeeds = 8;
  int covered_row_count = 0;
  int rows = 0;
  double squares = 0;
  double widths = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", others from kind " << first_co_tenant_kind << " on");
    const SimulatedRun run = SimulatedGpu({}, seed).simulate_mixture(60);
    const LedgerResult ledger = attribute_with_co_tenants(run, first_co_tenant_kind);
    double co_tenant_j = 0;
    for (std::size_t kind = first_co_tenant_kind; kind < run.joules.size(); ++kind) co_tenant_j += run.joules[kind];
    for (const ReportRow& row : ledger.rows) {
      const bool is_co_tenant = row.name == "background";
      const double truth_j = is_co_tenant ? co_tenant_j : run.joules[static_cast<std::size_t>(row.name.back() - '0')];
      if (*row.low_j <= truth_j && truth_j <= *row.high_j) ++covered_row_count;
      ++rows;
      if (!is_co_tenant) continue;
      EXPECT_EQ(row.basis, kTimeShareBasis);
      squares += (*row.energy_j / truth_j - 1) * (*row.energy_j / truth_j - 1);
      widths += (*row.high_j - *row.low_j) / 2 / *row.energy_j;
    }
  }
  const double error = std::sqrt(squares / kSeeds);
  std::cout << "others from kind " << first_co_tenant_kind << " on: " << 100 * error << " % off, +- "
            << 100 * widths / kSeeds << " %, " << covered_row_count << " of " << rows << " intervals hold\n";
  EXPECT_LT(error, 0.3);
  EXPECT_GE(covered_row_count, rows * 8 / 10);
}

TEST(CoTenantsOnAGpu, AreEstimatedInAMixtureWithIntervalsThatCover) {
  expect_intervals_cover(3);
  expect_intervals_cover(6);
}

}  // namespace
}  // namespace joulemap::attribution
