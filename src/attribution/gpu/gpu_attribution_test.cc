// SPDX-License-Identifier: Apache-2.0
//
// From samples and kernels to rows, as in `report`, with a simulated GPU whose true powers are known.
#include "attribution/gpu/gpu_attribution.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attribution/ledger/ledger.h"
#include "attribution/ledger/recorded_energy.h"
#include "base/clock.h"
#include "support/simulated_gpu.h"

namespace joulemap::attribution {
namespace {

constexpr std::uint32_t kProcess = 2;

LedgerResult attribute_energy(const SimulatedRun& run, bool with_kernels = true) {
  const TimeSpan span{run.begin_ns, run.end_ns};
  const std::vector<Channel> channels = {SimulatedGpu::channel()};
  RecordedEnergy recorded(channels, span, 10);
  for (const Sample& sample : run.samples) recorded.add(sample);
  const RecordedEnergy::Result energy = recorded.finish();
  std::vector<Activity> activities = activities_of(run);
  for (Activity& activity : activities) {
    if (!with_kernels) activity.kernels.clear();
  }
  ActivitySums sums(span);
  GpuWorkCollector work(span);
  for (const Activity& activity : activities) {
    sums.add(kProcess, activity);
    work.add(kProcess, activity);
  }
  sums.finish();
  std::map<std::string, DeviceWork> work_by_device = work.finish(sums.processes());
  MachineEnergy machine;
  MachineEnergy::Gpu gpu{"gpu0", energy.domain_curves.at(0).energy_j, {}};
  gpu.powers =
      find_kernel_powers(std::move(work_by_device.at("GPU-1")), {energy.domain_curves[0].counter_updates}, span);
  gpu.energy_j = lag_corrected_curve(energy.domain_curves[0].curve, gpu.powers->power_fit.counter_lag_ns, gpu.energy_j);
  const double measured_j = gpu.energy_j.total();
  machine.gpus.emplace("GPU-1", std::move(gpu));
  Ledger ledger(RowLevel::kernel, machine, sums);
  for (const Activity& activity : activities) ledger.add(kProcess, activity);
  LedgerResult result = ledger.finish();
  EXPECT_NEAR(*result.attributed_j + *result.idle_j, measured_j, 1e-6 * measured_j);
  EXPECT_NEAR(*result.unattributed_j, 0, 1e-6 * measured_j);
  return result;
}

std::size_t kernel_kind_of(const ReportRow& row) { return static_cast<std::size_t>(row.name.back() - '0'); }

TEST(GpuAttribution, RowsOfAMixtureMatchTheEnergyOfTheirKernels) {
  int covered_row_count = 0;
  int rows = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SimulatedGpu gpu({}, seed);
    const SimulatedRun run = gpu.simulate_mixture(40);
    const LedgerResult result = attribute_energy(run);
    ASSERT_EQ(result.rows.size(), run.joules.size());
    for (const ReportRow& row : result.rows) {
      const double truth_j = run.joules[kernel_kind_of(row)];
      EXPECT_EQ(row.basis, "regressed") << row.name;
      EXPECT_NEAR(*row.energy_j / truth_j, 1, 0.08) << row.name;
      const double idle_j = 130 * run.busy_s[kernel_kind_of(row)];
      EXPECT_NEAR(*row.dynamic_j, truth_j - idle_j, 0.12 * truth_j) << row.name;
      if (*row.low_j <= truth_j && truth_j <= *row.high_j) ++covered_row_count;
      ++rows;
    }
    EXPECT_NEAR(*result.idle_j / run.idle_j, 1, 0.15);
    EXPECT_FALSE(result.diagnostics.contains("kernels_by_time"));
  }
  EXPECT_GE(covered_row_count, rows * 8 / 10);
}

TEST(GpuAttribution, RowsOfASteadyLoopAreTimeProportionalAndMarkedSo) {
  SimulatedGpu gpu({}, 5);
  const SimulatedRun run = gpu.steady_loop(30, 5);
  const LedgerResult result = attribute_energy(run);
  ASSERT_EQ(result.rows.size(), run.joules.size());
  int covered_row_count = 0;
  for (const ReportRow& row : result.rows) {
    EXPECT_EQ(row.basis, "time-share");
    EXPECT_NEAR(*row.power_w / *result.rows.front().power_w, 1, 1e-3);
    const double truth_j = run.joules[kernel_kind_of(row)];
    if (*row.low_j <= truth_j && truth_j <= *row.high_j) ++covered_row_count;
  }
  EXPECT_GE(covered_row_count, 6);
  EXPECT_TRUE(result.diagnostics.contains("kernels_by_time"));
}

TEST(GpuAttribution, TalliesAloneIdentifyLessAndStillSumToTheTotal) {
  SimulatedGpu gpu({}, 6);
  const SimulatedRun run = gpu.simulate_mixture(60);
  const LedgerResult result = attribute_energy(run, false);
  for (const ReportRow& row : result.rows) EXPECT_GT(*row.energy_j, 0) << row.name;
}

TEST(GpuAttribution, AShortRunIsTimeProportional) {
  SimulatedGpu gpu({}, 7);
  const LedgerResult result = attribute_energy(gpu.simulate_mixture(1.1));
  for (const ReportRow& row : result.rows) {
    EXPECT_EQ(row.basis, "time-share");
    EXPECT_LT(*row.low_j, *row.energy_j);
    EXPECT_GT(*row.high_j, *row.energy_j);
    EXPECT_FALSE(row.dynamic_j);
  }
}

// A kernel runs only in the last tenth of a second. The kernel sum covers the whole second; the power over time is
// exact. The kernel gets 50 J. With the rate at its own time instead of that of the whole interval, it would get 180 J.
TEST(GpuAttribution, AKernelInAMostlyIdleIntervalGetsItsOwnEnergy) {
  const TimeSpan span{0, 1000 * kNanosecondsPerMillisecond};
  Activity activity{.begin_ns = 0, .end_ns = span.end_ns};
  activity.classes = {{.id = 1, .name = "work"}};
  activity.queues = {{.id = 1, .device = "GPU-1"}};
  activity.kernel_tallies = {{.class_id = 1, .queue = 1, .count = 1, .time_ns = 100 * kNanosecondsPerMillisecond}};
  ActivitySums sums(span);
  sums.add(kProcess, activity);
  sums.finish();
  MachineEnergy machine;
  MachineEnergy::Gpu gpu{"gpu0", TimeCurve(span, 100), GpuPowers()};
  gpu.energy_j.add(0, 900 * kNanosecondsPerMillisecond, 90);
  gpu.energy_j.add(900 * kNanosecondsPerMillisecond, span.end_ns, 50);
  gpu.energy_j.finish();
  gpu.powers->power_fit.classes = {{.watts = 500}, {.watts = 100}};
  gpu.powers->class_columns[{kProcess, 1}] = 0;
  gpu.powers->modelled_j = TimeCurve(span, 100);
  gpu.powers->modelled_j.add(0, span.end_ns, 50);
  gpu.powers->modelled_j.finish();
  machine.gpus.emplace("GPU-1", std::move(gpu));
  const GpuAttribution shares(machine, sums);
  const double weight = shares.kernel_weight("GPU-1", kProcess, 1, 0).weight;
  const Kernel kernel{.start_ns = 900 * kNanosecondsPerMillisecond,
                      .end_ns = 1000 * kNanosecondsPerMillisecond,
                      .class_id = 1,
                      .queue = 1};
  EXPECT_NEAR(0.1 * weight * shares.kernel_power_per_weight("GPU-1", kernel), 50, 0.1);
}

TEST(GpuAttribution, TooFewReadingsStillSeparateIdleFromKernelPower) {
  // Ten seconds asleep at 76 W, then ten seconds of work: 400 W for half of the time, 128 W idle between.
  DeviceWork work;
  work.timeline = KernelTimeline(1);
  work.slices = {
      {.begin_ns = 10 * kNanosecondsPerSecond, .end_ns = 20 * kNanosecondsPerSecond, .column = 0, .busy_s = 5}};
  const std::vector<EnergyPoint> updates = {{0, 0},
                                            {10 * kNanosecondsPerSecond, 760},
                                            {15 * kNanosecondsPerSecond, 760 + 5 * 264},
                                            {20 * kNanosecondsPerSecond, 760 + 10 * 264}};
  PowerEvidence evidence{updates};
  evidence.calibrated_sensor.active_idle_power = IdlePower{128, 7};
  const GpuPowers powers = find_kernel_powers(std::move(work), evidence, {0, 20 * kNanosecondsPerSecond});
  EXPECT_NEAR(powers.power_fit.classes[0].watts, 400, 8);
  EXPECT_NEAR(powers.power_fit.idle_power().watts, 128, 8);
}

}  // namespace
}  // namespace joulemap::attribution
