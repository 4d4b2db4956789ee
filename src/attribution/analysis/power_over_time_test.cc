// SPDX-License-Identifier: Apache-2.0
//
// Power over time from a counter that is read every few seconds and the power history that its device keeps.
#include <gtest/gtest.h>

#include <vector>

#include "attribution/ledger/recorded_energy.h"
#include "attribution/ledger/step_rows.h"
#include "base/clock.h"
#include "support/h200_phases.h"

namespace joulemap::attribution {
namespace {

RecordedEnergy::Result record_h200_energy(const H200Phases& gpu, TimeSpan span, std::size_t slices = 1) {
  RecordedEnergy recorded(H200Phases::channels(), span, slices);
  for (const Sample& sample : gpu.samples()) recorded.add(sample);
  return recorded.finish();
}

// A pause of 2.5 s between loads has idle power, wherever the reads of the counter fall. Linear interpolation between
// reads would give 144 to 300 W.
TEST(PowerOverTime, AnIdlePhaseBetweenLoadsHasIdlePower) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const double loaded_phase_s = 5 + 0.21 * static_cast<double>(seed);
    const H200Phases gpu{.phases = {{2, 128}, {loaded_phase_s, 650}, {2.5, 128}, {6, 650}, {1, 128}}, .seed = seed};
    const std::int64_t idle_ns = gpu.begin_ns() + H200Phases::to_ns(2 + loaded_phase_s);
    const TimeSpan idle{idle_ns + 100 * kNanosecondsPerMillisecond, idle_ns + 2400 * kNanosecondsPerMillisecond};
    const RecordedEnergy::Result part = record_h200_energy(gpu, idle);  // as `report --time` does
    EXPECT_NEAR(part.domain_table.rows.at(0).mean_w.value(), 128, 128 * 0.02);

    const TimeSpan run_span{gpu.begin_ns(), gpu.end_ns()};
    const RecordedEnergy::Result run =
        record_h200_energy(gpu, run_span, 1000);  // as power over time in JSON and on pages
    const double slice_ns = static_cast<double>(run_span.end_ns - run_span.begin_ns) / 1000;
    double sum_w = 0;
    int slices = 0;
    for (std::size_t i = 0; i < 1000; ++i) {
      const std::int64_t from_ns = run_span.begin_ns + static_cast<std::int64_t>(slice_ns * static_cast<double>(i));
      if (from_ns < idle.begin_ns || from_ns + static_cast<std::int64_t>(slice_ns) > idle.end_ns) continue;
      sum_w += run.power_series.at(0).watts[i].value();
      ++slices;
    }
    EXPECT_NEAR(sum_w / slices, 128, 128 * 0.02);
  }
}

TEST(PowerOverTime, AdjacentWindowsSumToTheWhole) {
  const H200Phases gpu{.phases = {{1, 128}, {4, 600}, {3, 128}, {4, 400}, {1, 128}}, .seed = 3};
  const TimeSpan run_span{gpu.begin_ns(), gpu.end_ns()};
  const double run_energy_j = record_h200_energy(gpu, run_span).domain_table.rows.at(0).joules.value();
  double sum_j = 0;
  for (std::int64_t from_ns = run_span.begin_ns; from_ns < run_span.end_ns;
       from_ns += 370 * kNanosecondsPerMillisecond) {
    const TimeSpan part{from_ns, std::min(from_ns + 370 * kNanosecondsPerMillisecond, run_span.end_ns)};
    sum_j += record_h200_energy(gpu, part).domain_table.rows.at(0).joules.value();
  }
  EXPECT_NEAR(sum_j, run_energy_j, 1e-6 * run_energy_j);
}

TEST(PowerOverTime, WithoutPowerHistoryPowerIsConstantBetweenReads) {
  const H200Phases gpu{.phases = {{1, 128}, {4, 600}, {3, 128}, {4, 400}, {1, 128}}, .seed = 4};
  const TimeSpan span{gpu.begin_ns(), gpu.end_ns()};
  RecordedEnergy recorded(H200Phases::channels(), span, 100);
  for (const Sample& sample : gpu.samples()) {
    if (sample.channel == 0) recorded.add(sample);
  }
  const RecordedEnergy::Result energy = recorded.finish();
  const double truth_j = gpu.compute_joules_until(gpu.end_s()) - gpu.compute_joules_until(gpu.begin_s);
  EXPECT_NEAR(energy.domain_table.rows.at(0).joules.value() / truth_j, 1, 0.01);
  double sum_j = 0;
  for (const std::optional<double>& watts : energy.power_series.at(0).watts) sum_j += watts.value() * energy.slice_s;
  EXPECT_NEAR(sum_j / *energy.domain_table.rows[0].joules, 1, 1e-6);
}

// A GPU waits at 75 W for 1.8 s and then trains at 500 W, with a counter that is read every 2.5 s: a step of 70 ms uses
// 35 J from the first step on, not the 14 J that the mean power between two reads gives.
TEST(PowerOverTime, TheFirstTrainingStepsExcludeStartUpEnergy) {
  const H200Phases gpu{.phases = {{1.8, 75}, {8.2, 500}}};
  const TimeSpan span{gpu.begin_ns(), gpu.end_ns()};
  const std::int64_t begin_ns = gpu.begin_ns() + 1800 * kNanosecondsPerMillisecond;
  const RecordedEnergy::Result energy = record_h200_energy(gpu, span);
  ASSERT_EQ(energy.domain_curves.size(), 1u);
  std::vector<StepOrEpochMark> step_marks;
  for (std::uint64_t step = 0; step < 100; ++step)
    step_marks.push_back({begin_ns + static_cast<std::int64_t>(step) * 70 * kNanosecondsPerMillisecond, step});
  const EnergyFunction energy_between_j = [&](std::int64_t from_ns, std::int64_t to_ns) {
    return energy.domain_curves[0].curve.joules_at(to_ns) - energy.domain_curves[0].curve.joules_at(from_ns);
  };
  const std::vector<StepOrEpochEnergy> steps =
      compute_energies_between_marks({step_marks, span.end_ns}, energy_between_j, span, ProbeSpans(span));
  for (std::size_t step = 0; step < 99; ++step) EXPECT_NEAR(steps[step].energy_j.value(), 35, 2.5) << "step " << step;
}

// No mark shows the end of the last step: work after the loop is not part of it.
TEST(PowerOverTime, TheLastStepHasTheLengthOfTheOtherSteps) {
  const TimeSpan span{0, 20 * kNanosecondsPerSecond};
  const EnergyFunction energy_j = [](std::int64_t from_ns, std::int64_t to_ns) {
    return 100 * seconds(to_ns - from_ns);
  };
  std::vector<StepOrEpochMark> step_marks;
  for (std::uint64_t step = 0; step < 50; ++step)
    step_marks.push_back({static_cast<std::int64_t>(step) * 30 * kNanosecondsPerMillisecond, step});
  const StepOrEpochMarks marks{step_marks, estimate_last_step_end_ns(step_marks, span.end_ns)};
  const LedgerResult steps = make_step_rows("step", marks, energy_j, span, ProbeSpans(span));
  for (const ReportRow& row : steps.rows) EXPECT_NEAR(row.energy_j.value(), 3, 1e-9) << row.name;
  EXPECT_NEAR(steps.unattributed_j.value(), 2000 - 150, 1e-6);
  step_marks.resize(2);
  EXPECT_EQ(estimate_last_step_end_ns(step_marks, span.end_ns), span.end_ns) << "two do not show how long a step takes";
}

}  // namespace
}  // namespace joulemap::attribution
