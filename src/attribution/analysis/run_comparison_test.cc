// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/run_comparison.h"

#include <gtest/gtest.h>

#include <cmath>

#include "statistics/random.h"
#include "support/ledger_example.h"

namespace joulemap::attribution {
namespace {

constexpr std::uint64_t kComparisonSeed = 20261117;
constexpr double kStep_s = 0.02;

// Steps of 10 J, which vary by up to three times `spread_j`; the first forty are warm-up, of 30 J.
std::vector<StepEnergy> make_steps_with_warm_up(double factor, double spread_j = 0.1) {
  std::vector<StepEnergy> steps;
  for (int i = 0; i < 400; ++i) {
    const double energy_j = factor * (10 + (i % 7 - 3) * spread_j + (i < 40 ? 20 : 0));
    steps.push_back({2 + kStep_s * i, 2 + kStep_s * (i + 1), kStep_s, energy_j});
  }
  return steps;
}

// Reports of a whole run: the rows include start-up.
RunReports make_whole_run_reports(double factor) {
  RunReports reports{.rows = make_scaled_training_report(factor), .steps = make_steps_with_warm_up(factor)};
  reports.steady_state = find_steady_state(reports.steps);
  reports.elapsed_s = 10;
  reports.energy_j = joules_of(reports.rows.totals.measured);
  return reports;
}

RunReports steady_state(double factor) {
  RunReports reports = make_whole_run_reports(factor);
  reports.is_steady = true;
  reports.rows.is_clipped = true;
  reports.steps_in_rows = static_cast<double>(reports.steady_state->steps);
  return reports;
}

Result<RunDifference> compare_two_runs(const RunReports& reports_a, const RunReports& reports_b,
                                       const ComparisonQuery& query = {}) {
  return compare_runs({&reports_a, 1}, {&reports_b, 1}, query);
}

const DifferenceEntry& entry(const RunDifference& difference, const std::string& device, const std::string& name) {
  for (const DifferenceEntry& difference_entry : difference.entries) {
    if (difference_entry.device == device && difference_entry.path.size() > 1 &&
        difference_entry.path[1] + " " + difference_entry.name == name)
      return difference_entry;
  }
  static const DifferenceEntry empty_entry;
  return empty_entry;
}

bool has_changed_entry(const RunDifference& difference) {
  return std::any_of(difference.entries.begin(), difference.entries.end(), [](const DifferenceEntry& difference_entry) {
    return difference_entry.verdict == ChangeVerdict::grew || difference_entry.verdict == ChangeVerdict::shrank;
  });
}

TEST(RunComparison, ARunComparedWithItselfIsWithinNoise) {
  const Result<RunDifference> run_difference =
      compare_two_runs(steady_state(1), steady_state(1), {.failure_threshold = 0.0});
  ASSERT_TRUE(run_difference);
  EXPECT_EQ(run_difference->per, "sample");
  EXPECT_TRUE(run_difference->is_steady);
  EXPECT_EQ(run_difference->total.verdict, ChangeVerdict::within_noise);
  EXPECT_FALSE(run_difference->failed);
  for (const DifferenceEntry& difference_entry : run_difference->entries)
    EXPECT_EQ(difference_entry.verdict, ChangeVerdict::within_noise) << difference_entry.name;
}

TEST(RunComparison, ComparesSteadyStepsAndReportsExcludedOnes) {
  const Result<RunDifference> run_difference = compare_two_runs(steady_state(1), steady_state(1), {.per = "step"});
  ASSERT_TRUE(run_difference);
  EXPECT_NEAR(run_difference->total.a->energy_j, 10, 0.01) << "not the 30 J of warm-up";
  const ComparedRecording& recording = run_difference->a.recordings.front();
  ASSERT_TRUE(recording.exclusion);
  EXPECT_EQ(recording.exclusion->warm_up_steps, 40u);
  EXPECT_NEAR(recording.exclusion->time_s, 10 - 359 * kStep_s, 1e-9);
  EXPECT_NEAR(*recording.exclusion->energy_j, 4500 - 359 * 10, 5);
  EXPECT_NEAR(run_difference->a.units, 359, 1e-9);
  EXPECT_NEAR(*run_difference->a.time_s, kStep_s, 1e-9);
}

TEST(RunComparison, EnergiesArePerUnitAndTheIntervalCoversTheDifference) {
  const Result<RunDifference> run_difference =
      compare_two_runs(make_whole_run_reports(1), make_whole_run_reports(1.5), {.per = "step", .whole_run = true});
  ASSERT_TRUE(run_difference);
  EXPECT_FALSE(run_difference->is_steady);
  EXPECT_DOUBLE_EQ(run_difference->total.a->energy_j, 4500.0 / 400);
  EXPECT_DOUBLE_EQ(run_difference->total.b->energy_j, 6500.0 / 400);
  EXPECT_EQ(run_difference->total.verdict, ChangeVerdict::grew);
  EXPECT_LT(*run_difference->total.low_j, 5.0);
  EXPECT_GT(*run_difference->total.high_j, 5.0);
  const DifferenceEntry& larger_entry = entry(*run_difference, "gpu0", "backward layer1.0.conv1");
  EXPECT_NEAR(*larger_entry.difference_j, 700.0 / 400, 1e-12);
  EXPECT_EQ(larger_entry.verdict, ChangeVerdict::grew);
  EXPECT_EQ(compare_two_runs(make_whole_run_reports(1.5), make_whole_run_reports(1), {.per = "step", .whole_run = true})
                ->total.verdict,
            ChangeVerdict::shrank);
}

TEST(RunComparison, OneRecordingPerSideCannotEstablishRunToRunVariation) {
  const Result<RunDifference> run_difference =
      compare_two_runs(steady_state(1), steady_state(1.026), {.failure_threshold = 0.01});
  EXPECT_EQ(run_difference->total.verdict, ChangeVerdict::within_noise)
      << "2.6 % between two runs of one program on an H200";
  EXPECT_FALSE(run_difference->failed);
  EXPECT_GT(*run_difference->smallest_detectable_change, 0.05);
  EXPECT_TRUE(run_difference->diagnostics.contains("gate_below_noise"));
  ASSERT_EQ(run_difference->detectable_changes.size(), 3u);
  EXPECT_NEAR(run_difference->detectable_changes[0].relative_change, *run_difference->smallest_detectable_change,
              1e-12);
  EXPECT_GT(run_difference->detectable_changes[1].relative_change,
            run_difference->detectable_changes[2].relative_change);
  EXPECT_EQ(compare_two_runs(steady_state(1), steady_state(1.026), {.run_sd = 0.002})->total.verdict,
            ChangeVerdict::grew)
      << "by a stated prior";
}

TEST(RunComparison, FailsOnlyWhenTheTotalGrowsBeyondThresholdAndNoise) {
  EXPECT_TRUE(compare_two_runs(steady_state(1), steady_state(1.2), {.failure_threshold = 0.05})->failed);
  EXPECT_FALSE(compare_two_runs(steady_state(1), steady_state(1.12), {.failure_threshold = 0.15})->failed)
      << "grew, but by less";
  EXPECT_FALSE(compare_two_runs(steady_state(1.2), steady_state(1), {.failure_threshold = 0.05})->failed) << "shrank";
  EXPECT_FALSE(compare_two_runs(steady_state(1), steady_state(1.2), {})->failed) << "no gate was given";
  RunReports uncertain_run = steady_state(1.2);
  uncertain_run.rows.domains[0].uncertainty_j = 2000;
  EXPECT_FALSE(compare_two_runs(steady_state(1), uncertain_run, {.failure_threshold = 0.05})->failed)
      << "grew within the noise";
}

TEST(RunComparison, GrowthFromZeroFailsAtAnyThreshold) {
  const ComparisonQuery query{.per = "run", .failure_threshold = 0.05, .whole_run = true};
  RunReports idle_run = make_whole_run_reports(0);
  for (DomainEnergy& domain : idle_run.rows.domains) domain.joules = domain.uncertainty_j = 0;
  idle_run.rows.totals = total_energy(idle_run.rows.domains);
  const Result<RunDifference> run_difference = compare_two_runs(idle_run, make_whole_run_reports(1), query);
  ASSERT_TRUE(run_difference);
  EXPECT_EQ(run_difference->total.verdict, ChangeVerdict::grew);
  EXPECT_FALSE(run_difference->total.relative_change);
  EXPECT_TRUE(run_difference->failed);
  EXPECT_FALSE(compare_two_runs(idle_run, idle_run, query)->failed);
}

TEST(RunComparison, AutocorrelatedStepsWidenTheNoise) {
  RunReports steady = steady_state(1.1);
  RunReports autocorrelated = steady_state(1.1);
  for (std::size_t i = 0; i < autocorrelated.steps.size(); ++i)
    autocorrelated.steps[i].energy_j = 11 + 4 * std::sin(double(i) / 40);
  autocorrelated.steady_state = find_steady_state(autocorrelated.steps);
  EXPECT_EQ(compare_two_runs(steady_state(1), steady)->total.verdict, ChangeVerdict::grew);
  EXPECT_EQ(compare_two_runs(steady_state(1), autocorrelated)->total.verdict, ChangeVerdict::within_noise);
}

TEST(RunComparison, EntriesOfOneSideAreAddedOrRemoved) {
  RunReports b = steady_state(1);
  b.rows.rows[0].path.back() = b.rows.rows[0].name = "layer1.0.conv9";
  const Result<RunDifference> run_difference = compare_two_runs(steady_state(1), b);
  EXPECT_EQ(entry(*run_difference, "gpu0", "backward layer1.0.conv9").verdict, ChangeVerdict::appeared);
  EXPECT_EQ(entry(*run_difference, "gpu0", "backward layer1.0.conv1").verdict, ChangeVerdict::gone);
}

TEST(RunComparison, ReportsThatACommandWasKilledOrFailed) {
  RunReports killed_run = steady_state(1);
  killed_run.rows.signal = 9;
  RunReports failed_run = steady_state(1);
  failed_run.rows.exit_code = 3;
  const Result<RunDifference> run_difference = compare_two_runs(killed_run, failed_run);
  ASSERT_TRUE(run_difference);
  std::vector<std::string> messages;
  for (const Diagnostic& diagnostic : run_difference->diagnostics.list()) {
    if (diagnostic.code == "command_failed") messages.push_back(diagnostic.message);
  }
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_NE(messages[0].find("A: "), std::string::npos);
  EXPECT_NE(messages[0].find("killed by signal 9"), std::string::npos);
  EXPECT_NE(messages[1].find("B: "), std::string::npos);
  EXPECT_NE(messages[1].find("failed with exit code 3"), std::string::npos);
  EXPECT_FALSE(compare_two_runs(steady_state(1), steady_state(1))->diagnostics.contains("command_failed"));
}

TEST(RunComparison, RefusesToCompareMeasurementWithEstimate) {
  RunReports b = steady_state(1);
  b.rows.domains.erase(b.rows.domains.begin());
  b.rows.totals = total_energy(b.rows.domains);
  EXPECT_FALSE(compare_two_runs(steady_state(1), b));
}

// A run on a CPU without a sensor: its model has an error of 60 %, and other processes use `background_j`.
RunReports make_estimated_run(double factor, double background_j) {
  RunReports reports = steady_state(factor);
  ReportResult& rows = reports.rows;
  rows.domains.erase(rows.domains.begin());
  const double command_energy_j = factor * 1000;
  rows.domains[0].joules = command_energy_j + background_j;
  rows.domains[0].uncertainty_j = 0.6 * (command_energy_j + background_j);
  rows.totals = total_energy(rows.domains);
  ReportRow background;
  background.path = {"background"};
  background.device = "cpu";
  background.energy_j = background_j;
  rows.rows.push_back(background);
  reports.background_j = background_j;
  for (ReportRow& row : rows.rows) {
    row.low_j = 0.1 * *row.energy_j;  // nearly all of it is the error of the model
    row.high_j = 1.9 * *row.energy_j;
  }
  const double steady_j = reports.steady_state->energy_j * reports.steps_in_rows;
  for (StepEnergy& step : reports.steps) step.energy_j *= (command_energy_j + background_j) / steady_j;
  reports.steady_state = find_steady_state(reports.steps);
  return reports;
}

TEST(RunComparison, EstimatesOfOneMachineAreComparedWithoutTheirCommonErrorAndOtherProcesses) {
  const Result<RunDifference> halved_run_difference =
      compare_two_runs(make_estimated_run(1, 300), make_estimated_run(0.5, 200));
  ASSERT_TRUE(halved_run_difference);
  EXPECT_NEAR(*halved_run_difference->total.relative_change, -0.5, 0.01);
  EXPECT_EQ(halved_run_difference->total.verdict, ChangeVerdict::shrank);
  EXPECT_TRUE(halved_run_difference->diagnostics.contains("estimates_compared"));
  for (const DifferenceEntry& entry : halved_run_difference->entries) {
    EXPECT_EQ(entry.verdict, ChangeVerdict::shrank) << entry.name;
    EXPECT_GT(*entry.low_j, -entry.a->energy_j) << "an entry cannot fall by more than it had";
  }
  EXPECT_FALSE(std::ranges::any_of(halved_run_difference->entries, [](const DifferenceEntry& difference_entry) {
    return !difference_entry.path.empty() && difference_entry.path[0] == "background";
  }));
  EXPECT_FALSE(halved_run_difference->diagnostics.contains("unequal_load"));
  const Result<RunDifference> unchanged_run_difference =
      compare_two_runs(make_estimated_run(1, 200), make_estimated_run(1, 300));
  ASSERT_TRUE(unchanged_run_difference);
  EXPECT_EQ(unchanged_run_difference->total.verdict, ChangeVerdict::within_noise);
}

TEST(RunComparison, EstimatedDomainsKeepTheErrorOfTheModelBecauseTheyContainOtherProcesses) {
  const auto make_domain_run = [](double background_j) {
    RunReports run = make_estimated_run(1, background_j);
    run.rows.by = "domain";
    run.rows.rows.resize(1);
    ReportRow& domain = run.rows.rows.front();
    domain.path = {run.rows.domains[0].name};
    domain.energy_j = run.rows.domains[0].joules;
    domain.low_j = 0.4 * *domain.energy_j;
    domain.high_j = 1.6 * *domain.energy_j;
    return run;
  };
  const Result<RunDifference> run_difference = compare_two_runs(make_domain_run(100), make_domain_run(1100));
  ASSERT_TRUE(run_difference);
  EXPECT_NEAR(*run_difference->total.relative_change, 0, 0.01);
  ASSERT_FALSE(run_difference->entries.empty());
  EXPECT_EQ(run_difference->entries.front().verdict, ChangeVerdict::within_noise);
}

TEST(RunComparison, OtherProcessesWhileModulesWereReplayedAreNotSubtracted) {
  RunReports probed_run = make_estimated_run(1, 1000);
  // 40 s of probing after 10 s of steps: the replayed modules use 12 kJ, other processes 4 kJ more.
  probed_run.rows.elapsed_s = 50;
  probed_run.rows.probe = ProbeCost{40, {}};
  probed_run.rows.domains[0].joules = 18000;
  probed_run.rows.totals = total_energy(probed_run.rows.domains);
  probed_run.background_j = 5000;
  probed_run.replayed_modules_j = 12000;
  const Result<RunDifference> run_difference = compare_two_runs(make_estimated_run(1, 1000), probed_run);
  ASSERT_TRUE(run_difference);
  EXPECT_NEAR(*run_difference->total.relative_change, 0, 0.01);
  EXPECT_FALSE(run_difference->diagnostics.contains("unequal_load"));
}

// Their energy is that of the command's rows, which contain all steps.
TEST(RunComparison, EstimatesIncludeStepsOfUnusualEnergy) {
  RunReports run = make_estimated_run(1, 200);
  run.steps[200].energy_j *= 60;
  run.steady_state = find_steady_state(run.steps);
  ASSERT_EQ(run.steady_state->outlier_steps, 1u);
  const Result<RunDifference> run_difference = compare_two_runs(run, run, {.per = "step"});
  ASSERT_TRUE(run_difference);
  EXPECT_EQ(run_difference->a.recordings.front().exclusion->outlier_steps, 0u);
  EXPECT_NEAR(run_difference->a.units, 359, 1e-9);
  EXPECT_NEAR(run_difference->total.a->energy_j, 1000.0 / 359, 1e-9);
}

TEST(RunComparison, EvaluationStepsAreNotCounted) {
  RunReports run = steady_state(1);
  const double steps = static_cast<double>(run.steps.size());
  for (int batch = 0; batch < 5; ++batch) run.steps.push_back({11.0 + batch, 12.0 + batch, 1, 2, true});
  run.steady_state = find_steady_state(run.steps);
  const Result<RunDifference> run_difference = compare_two_runs(run, run);
  ASSERT_TRUE(run_difference);
  EXPECT_EQ(run_difference->a.recordings[0].steps, steps);
}

TEST(RunComparison, AnEstimateThatDoublesBesideOtherProcessesIsNotCalledAChange) {
  const Result<RunDifference> run_difference =
      compare_two_runs(make_estimated_run(1, 200), make_estimated_run(2, 8000));
  ASSERT_TRUE(run_difference);
  EXPECT_NEAR(*run_difference->total.relative_change, 1, 0.01);
  EXPECT_EQ(run_difference->total.verdict, ChangeVerdict::within_noise);
  EXPECT_TRUE(run_difference->diagnostics.contains("unequal_load"));
}

TEST(RunComparison, EstimatesOfTwoMachinesKeepTheErrorOfTheModel) {
  RunReports other_machine_run = make_estimated_run(0.5, 200);
  other_machine_run.rows.hosts = {"node2"};
  const Result<RunDifference> run_difference = compare_two_runs(make_estimated_run(1, 200), other_machine_run);
  ASSERT_TRUE(run_difference);
  EXPECT_EQ(run_difference->total.verdict, ChangeVerdict::within_noise);
  EXPECT_FALSE(run_difference->diagnostics.contains("estimates_compared"));
}

TEST(RunComparison, TheTotalHasOnlyDomainsOfAllRecordings) {
  RunReports b = steady_state(1);
  b.rows.domains[1].provenance = Provenance::measured;
  b.rows.totals = total_energy(b.rows.domains);
  for (StepEnergy& step : b.steps) step.energy_j *= 4800.0 / 4500;
  b.steady_state = find_steady_state(b.steps);
  const Result<RunDifference> run_difference = compare_two_runs(steady_state(1), b);
  ASSERT_TRUE(run_difference);
  EXPECT_EQ(run_difference->domains, std::vector<std::string>{"gpu0"});
  EXPECT_NEAR(*run_difference->total.relative_change, 0, 1e-9);
  EXPECT_TRUE(run_difference->diagnostics.contains("domains_differ"));
}

TEST(RunComparison, RefusesAUnitThatOneRecordingLacks) {
  RunReports b = make_whole_run_reports(1);
  b.rows.epochs = 0;
  EXPECT_FALSE(compare_two_runs(make_whole_run_reports(1), b, {.per = "epoch"}));
  EXPECT_TRUE(compare_two_runs(make_whole_run_reports(1), b, {.per = "run"}));
}

TEST(RunComparison, ComparesRunsWithoutStepsWholeAndReportsIt) {
  RunReports run_without_units{.rows = make_training_report()};
  run_without_units.rows.steps = run_without_units.rows.epochs = 0;
  run_without_units.rows.metrics.clear();
  EXPECT_FALSE(can_compare_steady_states(std::vector<std::optional<SteadyState>>{std::nullopt}, {}));
  const Result<RunDifference> run_difference = compare_two_runs(run_without_units, run_without_units);
  EXPECT_EQ(run_difference->per, "run");
  EXPECT_FALSE(run_difference->is_steady);
  RunReports run_with_few_steps = run_without_units;
  run_with_few_steps.rows.steps = 5;
  EXPECT_TRUE(compare_two_runs(run_with_few_steps, run_with_few_steps)->diagnostics.contains("no_steady_state"));
}

TEST(RunComparison, EpochsAndRunsAreComparedWhole) {
  const std::vector<std::optional<SteadyState>> steady_states = {steady_state(1).steady_state,
                                                                 steady_state(1).steady_state};
  EXPECT_TRUE(can_compare_steady_states(steady_states, {}));
  EXPECT_TRUE(can_compare_steady_states(steady_states, {.per = "step"}));
  EXPECT_FALSE(can_compare_steady_states(steady_states, {.per = "epoch"}));
  EXPECT_FALSE(can_compare_steady_states(steady_states, {.per = "run"}));
  EXPECT_FALSE(can_compare_steady_states(steady_states, {.whole_run = true}));
}

// Simulated runs of one program: a random factor per run, and random errors of rows that match their intervals.
class SimulatedRuns {
 public:
  explicit SimulatedRuns(std::uint64_t seed) : random_(seed) {}

  std::vector<RunReports> of(std::size_t count, double factor = 1) {
    std::vector<RunReports> runs;
    for (std::size_t i = 0; i < count; ++i) {
      runs.push_back(steady_state(factor * (1 + kRunVariationPrior.relative_sd * random_.normal())));
      for (ReportRow& row : runs.back().rows.rows) {
        if (!row.energy_j || !row.low_j) continue;
        const double offset_j = 0.5 * (*row.high_j - *row.low_j) / 1.6449 * random_.normal();
        for (std::optional<double>* value : {&row.energy_j, &row.low_j, &row.high_j}) **value += offset_j;
      }
    }
    return runs;
  }

 private:
  statistics::Random random_;
};

TEST(RunComparison, ReportsAtMostTenPercentFalseChanges) {
  RecordProperty("seed", std::to_string(kComparisonSeed));
  for (const std::size_t recordings : {1, 3}) {
    SimulatedRuns runs(kComparisonSeed + recordings);
    int totals = 0;
    int entries = 0;
    for (int pair = 0; pair < 200; ++pair) {
      const Result<RunDifference> run_difference = compare_runs(runs.of(recordings), runs.of(recordings), {});
      totals += run_difference->total.verdict == ChangeVerdict::within_noise ? 0 : 1;
      entries += has_changed_entry(*run_difference) ? 1 : 0;
    }
    EXPECT_LE(totals, 20) << recordings << " a side, seed " << kComparisonSeed + recordings;
    EXPECT_LE(entries, 20) << recordings << " a side: pairs that name any entry, seed " << kComparisonSeed + recordings;
  }
}

TEST(RunComparison, ThreeRecordingsPerSideDetectThePrintedChange) {
  SimulatedRuns runs(kComparisonSeed + 7);
  int detected_change_count = 0;
  for (int pair = 0; pair < 200; ++pair) {
    const double detectable_change = *compare_runs(runs.of(3), runs.of(3), {})->smallest_detectable_change;
    detected_change_count +=
        compare_runs(runs.of(3), runs.of(3, 1 + detectable_change), {})->total.verdict == ChangeVerdict::grew ? 1 : 0;
  }
  EXPECT_GE(detected_change_count, 150) << "of 200, seed " << kComparisonSeed + 7;
}

TEST(RunComparison, IntervalsOfEntriesAgreeWithTheirVerdicts) {
  SimulatedRuns runs(kComparisonSeed + 8);
  std::vector<RunReports> b = runs.of(3);
  for (RunReports& reports : b) {
    for (std::optional<double>* value :
         {&reports.rows.rows[0].energy_j, &reports.rows.rows[0].low_j, &reports.rows.rows[0].high_j})
      **value *= 2;
  }
  const Result<RunDifference> run_difference = compare_runs(runs.of(3), b, {});
  EXPECT_EQ(entry(*run_difference, "gpu0", "backward layer1.0.conv1").verdict, ChangeVerdict::grew);
  EXPECT_GE(run_difference->entry_confidence, run_difference->interval);
  for (const DifferenceEntry& difference_entry : run_difference->entries) {
    const bool excludes_zero = *difference_entry.low_j > 0 || *difference_entry.high_j < 0;
    EXPECT_EQ(excludes_zero,
              difference_entry.verdict == ChangeVerdict::grew || difference_entry.verdict == ChangeVerdict::shrank)
        << difference_entry.name;
  }
}

TEST(RunComparison, ListsIdleEnergyPerStepByCauseWithTheLargestChangeFirst) {
  RunReports run_a = steady_state(1);
  RunReports run_b = steady_state(1);
  const double steps = run_a.steps_in_rows;
  const auto idle = [&](IdleCause cause, double energy_per_step_j) {
    IdleEntry entry;
    entry.cause = cause;
    entry.device = "gpu0";
    entry.energy_j = energy_per_step_j * steps;
    return entry;
  };
  run_a.rows.idle = {idle(IdleCause::launch, 2), idle(IdleCause::data, 1)};
  run_b.rows.idle = {idle(IdleCause::launch, 2.1), idle(IdleCause::data, 2), idle(IdleCause::data, 3)};
  run_a.rows.rows.front().waiting_j = 0.5 * steps;
  const Result<RunDifference> run_difference = compare_two_runs(run_a, run_b, {.per = "step"});
  ASSERT_TRUE(run_difference);
  ASSERT_EQ(run_difference->idle.size(), 2U);
  EXPECT_EQ(run_difference->idle[0].cause, IdleCause::data);
  EXPECT_DOUBLE_EQ(run_difference->idle[0].energy_a_j, 1);
  EXPECT_DOUBLE_EQ(run_difference->idle[0].energy_b_j, 5);
  EXPECT_EQ(run_difference->idle[1].cause, IdleCause::launch);
  const auto waits = [](const DifferenceEntry& entry) { return entry.a && entry.a->waiting_j; };
  const auto waiting = std::ranges::find_if(run_difference->entries, waits);
  ASSERT_NE(waiting, run_difference->entries.end());
  EXPECT_DOUBLE_EQ(*waiting->a->waiting_j, 0.5);
}

}  // namespace
}  // namespace joulemap::attribution
