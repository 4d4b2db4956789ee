// SPDX-License-Identifier: Apache-2.0
//
// A loop of identical steps cannot identify its kernel powers; the same loop followed by replayed modules can, and the
// energy of the replay is reported separately from the loop.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "attribution/gpu/gpu_attribution.h"
#include "attribution/gpu/probe_spans.h"
#include "attribution/ledger/ledger.h"
#include "attribution/ledger/recorded_energy.h"
#include "attribution/ledger/step_rows.h"
#include "base/clock.h"
#include "support/simulated_gpu.h"

namespace joulemap::attribution {
namespace {

constexpr std::uint32_t kProcess = 2;
constexpr std::uint32_t kLayerScope = 3;
constexpr std::uint32_t kReplayedModuleScope = 5;

RecordedEnergy::Result recorded_energy_of(const SimulatedRun& run) {
  const std::vector<Channel> channels = {SimulatedGpu::channel()};
  RecordedEnergy energy(channels, {run.begin_ns, run.end_ns}, 10);
  for (const Sample& sample : run.samples) energy.add(sample);
  return energy.finish();
}

KernelTimeline make_timeline(const SimulatedRun& run) {
  KernelTimeline timeline(run.busy_s.size());
  for (const SimulatedKernel& kernel : run.kernels) {
    timeline.add_kernel(kernel.start_ns, kernel.end_ns, static_cast<std::uint16_t>(kernel.kind));
  }
  timeline.finish();
  return timeline;
}

TEST(Probing, IdentifiesKernelPowersOfEqualSteps) {
  int covered_count = 0;
  int count = 0;
  double squares = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SimulatedGpu gpu({}, seed);
    const SimulatedRun run = gpu.probed_loop(20, 5, 15);
    const std::vector<TimeSpan> probing = {{run.probe_begin_ns, run.end_ns}};
    const std::optional<PowerFit> fit =
        fit_powers(make_timeline(run), {recorded_energy_of(run).domain_curves.at(0).counter_updates, {}, probing});
    ASSERT_TRUE(fit);
    for (std::size_t kind = 0; kind < run.busy_s.size(); ++kind) {
      const double truth_w = run.joules[kind] / run.busy_s[kind];
      const KernelClassPower& class_power = fit->classes[kind];
      EXPECT_TRUE(class_power.is_regressed) << kind;
      EXPECT_TRUE(class_power.is_probed) << kind;
      squares += std::pow(class_power.watts / truth_w - 1, 2);
      if (class_power.low_w <= truth_w && truth_w <= class_power.high_w) ++covered_count;
      ++count;
    }
  }
  const double rms = std::sqrt(squares / count);
  std::printf("15 s of probing: %.2f %%; 90 %% intervals hold in %.1f %% of %d\n", 100 * rms,
              100.0 * covered_count / count, count);
  EXPECT_LT(rms, 0.04);
  EXPECT_GE(covered_count, count * 8 / 10);
}

TEST(Probing, AnIdentifiableMixtureStaysRegressed) {
  SimulatedGpu gpu({}, 3);
  const SimulatedRun run = gpu.simulate_mixture(60);
  const std::vector<TimeSpan> probing = {{run.end_ns - 10 * kNanosecondsPerSecond, run.end_ns}};
  const std::optional<PowerFit> fit =
      fit_powers(make_timeline(run), {recorded_energy_of(run).domain_curves.at(0).counter_updates, {}, probing});
  ASSERT_TRUE(fit);
  for (std::size_t kind = 0; kind < run.busy_s.size(); ++kind) {
    EXPECT_TRUE(fit->classes[kind].is_regressed) << kind;
    EXPECT_FALSE(fit->classes[kind].is_probed) << kind;
  }
}

// Kernels belong to a layer until the probing begins, and to the replay of that layer afterwards.
std::vector<Activity> probed_activities_of(const SimulatedRun& run) {
  const std::vector<Scope> scopes = {{1, 0, ScopeKind::mode, "train"},
                                     {2, 1, ScopeKind::phase, "forward"},
                                     {kLayerScope, 2, ScopeKind::module, "fc"},
                                     {4, 0, ScopeKind::mode, std::string(kProbeModeScopeName)},
                                     {kReplayedModuleScope, 4, ScopeKind::module, "fc"}};
  return activities_of(run, scopes, [&](const SimulatedKernel& kernel) {
    return kernel.start_ns < run.probe_begin_ns ? kLayerScope : kReplayedModuleScope;
  });
}

// Ledger of a simulated run with probing. `activities`: what was recorded; empty: everything.
LedgerResult attribute_energy(const SimulatedRun& run, RowLevel level, std::vector<Activity> activities = {}) {
  const TimeSpan span{run.begin_ns, run.end_ns};
  const std::vector<TimeSpan> probing = {{run.probe_begin_ns, run.end_ns}};
  const RecordedEnergy::Result energy = recorded_energy_of(run);
  if (activities.empty()) activities = probed_activities_of(run);
  ActivitySums sums(span);
  GpuWorkCollector work(span);
  for (const Activity& activity : activities) {
    sums.add(kProcess, activity);
    work.add(kProcess, activity, sums.process_activity(kProcess).scopes);
  }
  sums.finish();
  std::map<std::string, DeviceWork> work_by_device = work.finish(sums.processes());
  MachineEnergy machine;
  MachineEnergy::Gpu gpu{"gpu0", energy.domain_curves.at(0).energy_j, {}};
  gpu.powers = find_kernel_powers(std::move(work_by_device.at("GPU-1")),
                                  {energy.domain_curves[0].counter_updates, {}, probing}, span);
  gpu.energy_j = lag_corrected_curve(energy.domain_curves[0].curve, gpu.powers->power_fit.counter_lag_ns, gpu.energy_j);
  machine.gpus.emplace("GPU-1", std::move(gpu));
  Ledger ledger(level, machine, sums);
  for (const Activity& activity : activities) ledger.add(kProcess, activity);
  return ledger.finish();
}

double sum_values(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

TEST(Probing, RowsHaveTheEnergyOfTheRunAndProbingIsASeparateRow) {
  SimulatedGpu gpu({}, 11);
  const SimulatedRun run = gpu.probed_loop(20, 5, 15);
  const LedgerResult result = attribute_energy(run, RowLevel::kernel);
  ASSERT_EQ(result.rows.size(), run.joules.size() + 1);
  int covered_row_count = 0;
  for (const ReportRow& row : result.rows) {
    EXPECT_EQ(row.basis, "probed") << row.name;
    if (row.path == std::vector<std::string>{"probe"}) {
      EXPECT_NEAR(*row.energy_j / (sum_values(run.joules) - sum_values(run.loop_joules)), 1, 0.03);
      continue;
    }
    const double truth_j = run.loop_joules[static_cast<std::size_t>(row.name.back() - '0')];
    EXPECT_NEAR(*row.energy_j / truth_j, 1, 0.08) << row.name;
    if (*row.low_j <= truth_j && truth_j <= *row.high_j) ++covered_row_count;
  }
  EXPECT_GE(covered_row_count, 7);
  EXPECT_FALSE(result.diagnostics.contains("kernels_by_time"));
}

TEST(Probing, SeparatesLayersOfTheRunFromTheirReplays) {
  SimulatedGpu gpu({}, 12);
  const SimulatedRun run = gpu.probed_loop(20, 5, 15);
  for (const RowLevel level : {RowLevel::layer, RowLevel::phase, RowLevel::op, RowLevel::region}) {
    SCOPED_TRACE(row_level_name(level));
    const LedgerResult result = attribute_energy(run, level);
    bool has_probe_row = false;
    for (const ReportRow& row : result.rows) {
      const bool is_probe = row.path == std::vector<std::string>{"probe"};
      const double probe_j = sum_values(run.joules) - sum_values(run.loop_joules);
      EXPECT_NEAR(*row.energy_j / (is_probe ? probe_j : sum_values(run.loop_joules)), 1, 0.03) << row.path.front();
      has_probe_row = has_probe_row || is_probe;
    }
    EXPECT_TRUE(has_probe_row);
  }
}

double kernel_time_s(const SimulatedRun& run, bool probing) {
  double time_s = 0;
  for (const SimulatedKernel& kernel : run.kernels) {
    if ((kernel.start_ns >= run.probe_begin_ns) == probing) time_s += seconds(kernel.end_ns - kernel.start_ns);
  }
  return time_s;
}

// Every other step is traced, so each kernel of the run extrapolates to two steps. Kernels of probing were all traced.
TEST(Probing, ReplayedKernelsAreNotExtrapolatedInLightMode) {
  SimulatedGpu gpu({}, 13);
  const SimulatedRun run = gpu.probed_loop(20, 5, 15);
  std::vector<Activity> activities = probed_activities_of(run);
  const std::int64_t half_ns = run.probe_begin_ns / 2;
  activities.front().steps = {{.number = 0, .begin_ns = 0, .end_ns = half_ns, .is_traced = true},
                              {.number = 1, .begin_ns = half_ns, .end_ns = run.probe_begin_ns}};
  for (const ReportRow& row : attribute_energy(run, RowLevel::layer, activities).rows) {
    const bool is_probe = row.path.front() == "probe";
    EXPECT_NEAR(row.time_s / kernel_time_s(run, is_probe), is_probe ? 1 : 2, 1e-6);
  }
}

Mark region(MarkKind kind, std::uint64_t id, std::int64_t time_s, std::string_view name = kProbeRegionName) {
  Mark mark;
  mark.kind = kind;
  mark.id = id;
  mark.time_ns = time_s * kNanosecondsPerSecond;
  mark.name = name;
  return mark;
}

TEST(Probing, OverlappingProbingOfSeveralProcessesCountsOnce) {
  ProbeSpans probing({0, 100 * kNanosecondsPerSecond});
  probing.add(1, region(MarkKind::region_begin, 1, 10));
  probing.add(2, region(MarkKind::region_begin, 1, 12));
  probing.add(1, region(MarkKind::region_end, 1, 15));
  probing.add(2, region(MarkKind::region_end, 1, 20));
  probing.add(1, region(MarkKind::region_begin, 2, 40, "the program's own"));
  probing.add(1, region(MarkKind::region_begin, 3, 95));  // without an end: the process was killed
  probing.finish();
  EXPECT_NEAR(probing.total_s(), 15, 1e-9);
  EXPECT_NEAR(probing.time_in_spans_between_s(0, 13 * kNanosecondsPerSecond), 3, 1e-9);
}

TEST(Probing, BelongsToNoStep) {
  const TimeSpan span{0, 10 * kNanosecondsPerSecond};
  TimeCurve energy_j(span, 100);
  energy_j.add(0, span.end_ns, 1000);
  energy_j.finish();
  const EnergyFunction energy_between_j = [&](std::int64_t from_ns, std::int64_t to_ns) {
    return energy_j.amount_between(from_ns, to_ns);
  };
  ProbeSpans probing(span);
  probing.add(1, region(MarkKind::region_begin, 1, 6));
  probing.finish();
  const LedgerResult result =
      make_step_rows("step", {{{0, 0}, {2 * kNanosecondsPerSecond, 1}}, span.end_ns}, energy_between_j, span, probing);
  ASSERT_EQ(result.rows.size(), 3U);
  EXPECT_NEAR(*result.rows[0].energy_j, 200, 1e-6);
  EXPECT_NEAR(*result.rows[1].energy_j, 400, 1e-6);
  EXPECT_NEAR(result.rows[1].time_s, 4, 1e-9);
  EXPECT_EQ(result.rows[2].display_name, "probe");
  EXPECT_NEAR(*result.rows[2].energy_j, 400, 1e-6);
  EXPECT_NEAR(*result.attributed_j, 1000, 1e-6);
}

}  // namespace
}  // namespace joulemap::attribution
