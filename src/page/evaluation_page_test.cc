// SPDX-License-Identifier: Apache-2.0
#include "page/evaluation_page.h"

#include <gtest/gtest.h>

namespace joulemap::page {
namespace {

predict::Evaluation make_evaluation() {
  predict::Evaluation evaluation;
  evaluation.network_cases = {{"a|1", "a", false, 2, 2.2, 1, 1, 0, 1.8, 2.6},
                              {"b|1", "b", true, 20, 17, 1, 1, 0, 14, 21}};
  evaluation.operations_only_cases = evaluation.network_cases;
  evaluation.operations_only_cases[0].operations_j = 1;
  evaluation.operations_only_cases[1].operations_j = 16;
  evaluation.operation_cases = {{"<conv>", "convolution", 1e-3, 1.1e-3}, {"dense", "dense", 2e-3, 1.8e-3}};
  evaluation.operations = predict::score_predictions_by_kind(evaluation.operation_cases);
  return evaluation;
}

TEST(EvaluationPage, ShowsPredictionsErrorsByKindAndAdditivity) {
  const std::string page = evaluation_html(make_evaluation());
  for (const char* id : {"networks", "operations", "kinds", "additivity"})
    EXPECT_NE(page.find(std::string("<section id=\"") + id), std::string::npos) << id;
  EXPECT_NE(page.find("Median 1.62"), std::string::npos) << "of 2 and 1.25";
  EXPECT_EQ(page.find("<conv>"), std::string::npos) << "names are escaped";
  EXPECT_EQ(page.find("id=\"learners\""), std::string::npos) << "no learners were compared";
  EXPECT_EQ(page.find("<script"), std::string::npos);
}

TEST(EvaluationPage, ComparesLearnersInOneTable) {
  predict::Evaluation evaluation = make_evaluation();
  for (const predict::Learner learner : {predict::Learner::boosting, predict::Learner::forest}) {
    predict::Score score{.cases = 20};
    score.rmspe = learner == predict::Learner::boosting ? 0.081 : 0.123;
    evaluation.learners.push_back({learner, {{"operations", score}}});
  }
  const std::string page = evaluation_html(evaluation);
  for (const char* text : {"boosting", "forest", "8.1 %", "12.3 %"})
    EXPECT_NE(page.find(text), std::string::npos) << text;
}

TEST(EvaluationPage, WithoutCasesHasNoPlots) { EXPECT_EQ(evaluation_html({}).find("<svg"), std::string::npos); }

}  // namespace
}  // namespace joulemap::page
