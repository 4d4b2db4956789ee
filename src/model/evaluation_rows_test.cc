// SPDX-License-Identifier: Apache-2.0
#include "model/evaluation_rows.h"

#include <gtest/gtest.h>

namespace joulemap {
namespace {

ReportRow make_row(std::vector<std::string> path, std::uint64_t count) {
  ReportRow row;
  row.path = std::move(path);
  row.count = count;
  return row;
}

// 100 training steps, and inference with as many calls as given.
ReportResult make_training_report(std::uint64_t inference_call_count, std::uint64_t evaluation_steps) {
  ReportResult report;
  report.steps = 100;
  report.evaluation_steps = evaluation_steps;
  report.rows = {make_row({"train", "forward", "net"}, 100),
                 make_row({"inference", "forward", "net"}, inference_call_count)};
  return report;
}

TEST(EvaluationRows, InferenceInEvaluationStepsIsEvaluation) {
  EXPECT_TRUE(is_inference_evaluation(make_training_report(20, 20)));
  EXPECT_TRUE(is_inference_evaluation(make_training_report(300, 300)));
}

TEST(EvaluationRows, ATeacherIsNoEvaluation) {
  EXPECT_FALSE(is_inference_evaluation(make_training_report(100, 0)));
  EXPECT_FALSE(is_inference_evaluation(make_training_report(100, 2))) << "its first calls";
}

TEST(EvaluationRows, WithoutRecordedStepsInferenceBesideTrainingIsEvaluation) {
  ReportResult report = make_training_report(20, 0);
  report.steps = 0;
  EXPECT_TRUE(is_inference_evaluation(report));
  report.rows.erase(report.rows.begin());
  EXPECT_FALSE(is_inference_evaluation(report)) << "the program only infers";
}

TEST(EvaluationRows, SingleCallsBetweenMostTrainingStepsArePartOfTheTraining) {
  ReportResult agent = make_training_report(845, 380);
  agent.steps = 469;
  agent.evaluation_groups = 375;
  EXPECT_TRUE(is_inference_part_of_training(agent));
  EXPECT_FALSE(is_inference_evaluation(agent));
  ReportResult validated_training = make_training_report(48, 48);
  validated_training.steps = 24;
  validated_training.evaluation_groups = 2;
  EXPECT_FALSE(is_inference_part_of_training(validated_training));
  EXPECT_TRUE(is_inference_evaluation(validated_training));
}

}  // namespace
}  // namespace joulemap
