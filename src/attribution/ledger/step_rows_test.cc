// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/step_rows.h"

#include <gtest/gtest.h>

namespace joulemap::attribution {
namespace {

ReportRow layer(double energy_j, double waiting_j) {
  ReportRow row;
  row.path = {"train", "forward", "conv"};
  row.device = "gpu0";
  row.count = 1;
  row.time_s = 1;
  row.energy_j = energy_j;
  row.waiting_s = waiting_j / 100;
  row.waiting_j = waiting_j;
  row.waiting_low_j = waiting_j - 1;
  row.waiting_high_j = waiting_j + 1;
  row.cause.emplace();
  row.cause->times_s[EnergyCauseClass::memory] = row.time_s;
  return row;
}

TEST(MergedRows, AddWaitingAndCausesAsWellAsEnergy) {
  const std::vector<ReportRow> rows = merge_machine_rows({{layer(10, 5)}, {layer(20, 7)}});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].energy_j, 30);
  EXPECT_EQ(rows[0].waiting_j, 12);
  EXPECT_EQ(rows[0].waiting_low_j, 10);
  EXPECT_EQ(rows[0].waiting_high_j, 14);
  EXPECT_DOUBLE_EQ(*rows[0].waiting_s, 0.12);
  ASSERT_TRUE(rows[0].cause);
  EXPECT_EQ(rows[0].cause->times_s[EnergyCauseClass::memory], 2);
}

TEST(MergedRows, WaitingThatIsUnknownInOneRecordingIsUnknownInTheSum) {
  ReportRow unknown = layer(20, 7);
  unknown.waiting_j.reset();
  EXPECT_EQ(merge_machine_rows({{layer(10, 5)}, {unknown}})[0].waiting_j, std::nullopt);
}

std::string flag_evaluation_steps(std::vector<StepOrEpochMark> steps, const std::vector<EvaluationMark>& evaluations) {
  mark_evaluation_steps(steps, evaluations);
  std::string flags;
  for (const StepOrEpochMark& step : steps) flags += step.is_evaluation ? 'e' : '.';
  return flags;
}

TEST(EvaluationSteps, AreTheLastOnesThatBeganBeforeTheMark) {
  const std::vector<StepOrEpochMark> steps{{10, 0}, {20, 1}, {30, 2}, {40, 3}, {50, 4}};
  EXPECT_EQ(flag_evaluation_steps(steps, {}), ".....");
  EXPECT_EQ(flag_evaluation_steps(steps, {{40, 1}}), "..e..") << "the step that begins at the mark is not one of them";
  EXPECT_EQ(flag_evaluation_steps(steps, {{40, 3}, {60, 1}}), "eee.e");
  EXPECT_EQ(flag_evaluation_steps(steps, {{25, 9}}), "ee...") << "more steps than there are";
  EXPECT_EQ(flag_evaluation_steps({{30, 2}, {10, 0}, {20, 1}}, {{25, 1}}), ".e.") << "sorted by time";
}

TEST(EvaluationSteps, AreInOneGroupWithoutTrainingBetweenThem) {
  std::vector<StepOrEpochMark> steps(7);
  for (const std::size_t evaluation : {0, 1, 3, 5, 6}) steps[evaluation].is_evaluation = true;
  EXPECT_EQ(count_evaluation_groups(steps), 3u);
  EXPECT_EQ(count_evaluation_groups({}), 0u);
}

TEST(RetractedMarks, AreTheLastOnes) {
  std::vector<StepOrEpochMark> steps{{10, 0}, {20, 1}, {30, 2}};
  retract_marks(steps, 1);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps.back().number, 1u);
  retract_marks(steps, 9);
  EXPECT_TRUE(steps.empty()) << "more marks than there are";
}

TEST(EvaluationSteps, HaveRowsOfTheirOwnButNoTimesAmongTheSteps) {
  std::vector<StepOrEpochMark> steps{{10, 0}, {20, 1}, {30, 2}};
  mark_evaluation_steps(steps, std::vector<EvaluationMark>{{30, 1}});
  EXPECT_EQ(training_mark_times_ns(steps), (std::vector<std::int64_t>{10, 30}));
  const TimeSpan span{0, 40};
  const LedgerResult result = make_step_rows("step", {steps, span.end_ns}, {}, span, ProbeSpans(span));
  ASSERT_EQ(result.rows.size(), 3u);
  EXPECT_EQ(result.rows[1].display_name, "step 1 (evaluation)");
  EXPECT_EQ(result.rows[2].display_name, "step 2");
}

TEST(LastStep, HasTheMedianLengthOfTheStepsOfItsKind) {
  std::vector<StepOrEpochMark> steps;
  for (std::int64_t i = 0; i < 8; ++i) steps.push_back({100 * i, static_cast<std::uint64_t>(i)});
  for (std::int64_t i = 0; i < 4; ++i) steps.push_back({800 + 7 * i, static_cast<std::uint64_t>(8 + i), true});
  EXPECT_EQ(estimate_last_step_end_ns(steps, 10'000), 821 + 7);
  steps.resize(8);
  EXPECT_EQ(estimate_last_step_end_ns(steps, 10'000), 800);
  EXPECT_EQ(estimate_last_step_end_ns(steps, 750), 750);
}

TEST(StepRows, OfAPartOfTheRunContainOnlyThePartsInside) {
  const std::vector<StepOrEpochMark> steps{{0, 0}, {100, 1}, {200, 2}, {300, 3}, {400, 4}};
  const TimeSpan span{150, 320};
  const EnergyFunction energy_j = [](std::int64_t from_ns, std::int64_t to_ns) {
    return static_cast<double>(to_ns - from_ns);
  };
  const std::vector<StepOrEpochEnergy> energies =
      compute_energies_between_marks({steps, 500}, energy_j, span, ProbeSpans(span));
  ASSERT_EQ(energies.size(), 3u);
  EXPECT_EQ(energies[0].number, 1u);
  EXPECT_DOUBLE_EQ(*energies[0].energy_j, 50);
  EXPECT_DOUBLE_EQ(energies[0].covered_fraction, 0.5);
  EXPECT_DOUBLE_EQ(energies[1].covered_fraction, 1);
  EXPECT_DOUBLE_EQ(*energies[2].energy_j, 20);
  EXPECT_EQ(energies[2].span.end_ns, 320);
}

TEST(StepCounts, ContainFractionsOfStepsAtTheEdges) {
  const std::vector<StepOrEpochMark> steps{{0, 0}, {100, 1}, {200, 2, true}, {300, 3}};
  EXPECT_DOUBLE_EQ(count_covered(steps, std::vector<TimeSpan>{{0, 500}}, false), 3);
  EXPECT_DOUBLE_EQ(count_covered(steps, std::vector<TimeSpan>{{0, 500}}, true), 1);
  EXPECT_DOUBLE_EQ(count_covered(steps, std::vector<TimeSpan>{{25, 150}}, false), 1.25);
  EXPECT_DOUBLE_EQ(count_covered(steps, std::vector<TimeSpan>{{25, 150}, {250, 500}}, true), 0.5);
  EXPECT_DOUBLE_EQ(count_covered(steps, {}, false), 0);
}

}  // namespace
}  // namespace joulemap::attribution
