// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "attribution/analysis/run_view_builder.h"
#include "base/clock.h"
#include "recording/recording_writer.h"
#include "support/recordings.h"
#include "support/temporary_directory.h"

namespace joulemap::attribution {
namespace {

constexpr std::int64_t kStep_ns = 2 * kNanosecondsPerMillisecond;
constexpr std::uint64_t kStepCount = 5000;
constexpr double kPower_w = 50;

// Ten seconds at 50 W: 5000 steps in five epochs, a loss that falls by one per epoch, 8 samples per step.
std::string write_step_recording(const TemporaryDirectory& folder) {
  std::string file = folder.path() + "/steps.joule";
  Result<recording::RecordingWriter> writer = recording::RecordingWriter::create(file, make_recording_source(), 0);
  EXPECT_TRUE(writer);
  Channel channel = make_recorded_channel("package-0");
  channel.domain_class = DomainClass::cpu;
  writer->set_channels({&channel, 1});
  const std::int64_t begin_ns = kNanosecondsPerSecond;
  const auto end_ns = begin_ns + static_cast<std::int64_t>(kStepCount) * kStep_ns;
  writer->add(Mark{begin_ns, MarkKind::command_begin, 0, 0, {}});
  for (std::int64_t at_ns = begin_ns - kNanosecondsPerSecond / 2; at_ns <= end_ns + kNanosecondsPerSecond / 2;
       at_ns += kNanosecondsPerSecond / 100) {
    writer->add(Sample{0, {static_cast<std::uint64_t>(seconds(at_ns) * kPower_w * 1e6), at_ns, at_ns, ReadCode::ok}});
  }
  for (std::uint64_t step = 0; step < kStepCount; ++step) {
    const std::int64_t at_ns = begin_ns + static_cast<std::int64_t>(step) * kStep_ns;
    if (step % 1000 == 0) writer->add(Mark{at_ns, MarkKind::epoch, step / 1000, 1, {}});
    writer->add(Mark{at_ns, MarkKind::step, step, 1, {}});
    const auto number = static_cast<std::int64_t>(step);
    writer->add(Metric{at_ns + 1000, number, "loss", 9.0 - std::floor(static_cast<double>(step) / 1000)});
    writer->add(Metric{at_ns + 1000, number, "samples", 8});
    if (step % 500 == 0) {
      EXPECT_TRUE(writer->flush());
    }
  }
  writer->add(Mark{end_ns, MarkKind::command_end, 0, 0, {}});
  EXPECT_TRUE(writer->finish({}));
  return file;
}

RunView build_expected_view(const std::string& file) {
  Result<RunView> view = build_run_view({&file, 1});
  EXPECT_TRUE(view) << view.error().message;
  return view ? std::move(*view) : RunView();
}

double sum_energy_j(const std::vector<StepOrEpochView>& steps_or_epochs) {
  double sum_j = 0;
  for (const StepOrEpochView& step_or_epoch : steps_or_epochs) sum_j += step_or_epoch.energy_j.value_or(0);
  return sum_j;
}

TEST(RunView, GroupsManyStepsAndPreservesTheirEnergy) {
  const TemporaryDirectory folder;
  const RunView view = build_expected_view(write_step_recording(folder));
  EXPECT_LE(view.steps.size(), ViewLimits{}.max_steps_or_epochs);
  std::uint64_t steps = 0;
  for (const StepOrEpochView& step_or_epoch : view.steps) steps += step_or_epoch.count;
  EXPECT_EQ(steps, kStepCount);
  EXPECT_NEAR(sum_energy_j(view.steps), 500, 1);
  EXPECT_EQ(view.epochs.size(), 5u);
  EXPECT_NEAR(sum_energy_j(view.epochs), 500, 1);
}

TEST(RunView, ReturnsAllStepsOnRequest) {
  const TemporaryDirectory folder;
  const std::string file = write_step_recording(folder);
  ViewQuery query;
  query.limits.max_steps_or_epochs = 10'000;
  const Result<RunView> view = build_run_view({&file, 1}, query);
  ASSERT_TRUE(view);
  ASSERT_EQ(view->steps.size(), kStepCount);
  EXPECT_EQ(view->steps.back().number, kStepCount - 1);
  EXPECT_EQ(view->steps.back().count, 1u);
}

TEST(RunView, EpochsHaveLossAndEnergyPerUnitOfLoss) {
  const TemporaryDirectory folder;
  const RunView view = build_expected_view(write_step_recording(folder));
  ASSERT_EQ(view.epochs.size(), 5u);
  EXPECT_FALSE(view.epochs[0].joules_per_loss);  // no epoch before it
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(view.epochs[i].loss.value(), 9.0 - static_cast<double>(i), 1e-9);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_NEAR(view.epochs[i].joules_per_loss.value(), 100, 1);
}

TEST(RunView, DerivesFiguresFromEnergyTimeAndProgramMetrics) {
  const TemporaryDirectory folder;
  const RunView view = build_expected_view(write_step_recording(folder));
  const RunRates& rates = view.rates;
  EXPECT_NEAR(rates.energy_per_unit(rates.steps).value(), 0.1, 1e-3);
  EXPECT_NEAR(rates.energy_per_unit(rates.epochs).value(), 100, 1);
  EXPECT_NEAR(rates.energy_per_unit(rates.samples).value(), 500.0 / 40'000, 1e-4);
  EXPECT_NEAR(rates.samples_per_s().value(), 4000, 1);
  EXPECT_NEAR(rates.energy_delay_js().value(), 5000, 10);
  ASSERT_EQ(view.components.size(), 1u);
  EXPECT_EQ(view.components[0].name, "CPU");
  EXPECT_NEAR(joules_of(view.components[0].totals.measured).value(), 500, 1);
}

TEST(RunView, ShowsSomeAndCountsAllValuesOfAMetric) {
  const TemporaryDirectory folder;
  const RunView view = build_expected_view(write_step_recording(folder));
  ASSERT_EQ(view.metrics.size(), 2u);
  EXPECT_EQ(view.metrics[0].name, "loss");
  EXPECT_EQ(view.metrics[0].count, kStepCount);
  EXPECT_LE(view.metrics[0].points.size(), ViewLimits{}.metric_points);
  EXPECT_EQ(view.metrics[0].points.front().step, 0);
}

// Ten seconds at 50 W, in intervals of 0.1 s: two layers of a forward pass and one of a backward pass, which take all
// of the CPU time, and two steps per interval.
std::string write_phase_recording(const TemporaryDirectory& folder) {
  std::string file = folder.path() + "/phases.joule";
  Result<recording::RecordingWriter> writer = recording::RecordingWriter::create(file, make_recording_source(), 0);
  EXPECT_TRUE(writer);
  Channel channel = make_recorded_channel("package-0");
  channel.domain_class = DomainClass::cpu;
  writer->set_channels({&channel, 1});
  constexpr std::int64_t kSlice_ns = kNanosecondsPerSecond / 10;
  writer->add(Mark{kNanosecondsPerSecond, MarkKind::command_begin, 0, 0, {}});
  for (std::int64_t at_ns = kNanosecondsPerSecond / 2; at_ns <= 11 * kNanosecondsPerSecond + kNanosecondsPerSecond / 2;
       at_ns += kNanosecondsPerSecond / 100) {
    writer->add(Sample{0, {static_cast<std::uint64_t>(seconds(at_ns) * kPower_w * 1e6), at_ns, at_ns, ReadCode::ok}});
  }
  for (std::int64_t i = 0; i < 100; ++i) {
    Activity activity{.begin_ns = kNanosecondsPerSecond + i * kSlice_ns,
                      .end_ns = kNanosecondsPerSecond + (i + 1) * kSlice_ns};
    if (i == 0) {
      activity.scopes = {{1, 0, ScopeKind::mode, "train"},     {2, 1, ScopeKind::phase, "forward"},
                         {3, 1, ScopeKind::phase, "backward"}, {4, 2, ScopeKind::module, "conv"},
                         {5, 2, ScopeKind::module, "fc"},      {6, 3, ScopeKind::module, "fc"}};
    }
    activity.scope_tallies = {{4, 2, 0, kSlice_ns / 4, kSlice_ns / 4, 0},
                              {5, 2, 0, kSlice_ns / 4, kSlice_ns / 4, 0},
                              {6, 2, 0, kSlice_ns / 2, kSlice_ns / 2, 0}};
    for (std::uint64_t step = 0; step < 2; ++step) {
      const std::int64_t at_ns = activity.begin_ns + static_cast<std::int64_t>(step) * kSlice_ns / 2;
      writer->add(Mark{at_ns, MarkKind::step, 2 * static_cast<std::uint64_t>(i) + step, 1, {}});
    }
    writer->add(activity);
  }
  writer->add(Mark{11 * kNanosecondsPerSecond, MarkKind::command_end, 0, 0, {}});
  EXPECT_TRUE(writer->finish({}));
  return file;
}

TEST(RunView, ComputesSpreadsByPhaseOnRequest) {
  const TemporaryDirectory folder;
  const std::string file = write_phase_recording(folder);
  ViewQuery query;
  const Result<RunView> layers = build_run_view({&file, 1}, query);
  ASSERT_TRUE(layers);
  ASSERT_EQ(layers->layer_distributions.size(), 3u);
  EXPECT_EQ(layers->layer_distributions[0].per, "call");
  query.limits.distribution_level = DistributionLevel::phase;
  const Result<RunView> phases = build_run_view({&file, 1}, query);
  ASSERT_EQ(phases->layer_distributions.size(), 2u);
  for (const LayerDistribution& phase : phases->layer_distributions) {
    EXPECT_EQ(phase.path.size(), 2u);
    EXPECT_EQ(phase.per, "step");
    EXPECT_NEAR(phase.mean_j, 50.0 * 0.05 / 2, 0.05) << phase.path.back();
    EXPECT_EQ(phase.samples, 100u);
  }
}

TEST(RunView, PowerOverTimePreservesTheEnergy) {
  const TemporaryDirectory folder;
  const RunView view = build_expected_view(write_step_recording(folder));
  ASSERT_EQ(view.run.power.size(), 1u);
  double joules = 0;
  for (const std::optional<double>& watts : view.run.power[0].watts) joules += watts.value_or(0) * view.run.slice_s;
  EXPECT_NEAR(joules, joules_of(view.run.totals.measured).value(), 1e-6 * joules);
}

}  // namespace
}  // namespace joulemap::attribution
