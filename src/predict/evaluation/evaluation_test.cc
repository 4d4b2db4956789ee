// SPDX-License-Identifier: Apache-2.0
#include "predict/evaluation/evaluation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace joulemap::predict {
namespace {

TEST(LayerIntervalWidth, LayerIntervalCoversNineOfTenErrorsOfEitherSign) {
  std::vector<OperationCase> cases;
  for (int number = 0; number < 100; ++number) {
    const double factor = std::exp(0.01 * number);
    cases.push_back({"", "dense", 1e-5, number % 2 == 0 ? 1e-5 * factor : 1e-5 / factor});
  }
  NetworkModel model;
  set_layer_log_half_width(model, cases);
  EXPECT_NEAR(model.layer_log_half_width, 0.9, 0.011);
}

TEST(LayerIntervalWidth, LayerIntervalStaysUnchangedWithoutProfiledLayers) {
  NetworkModel model;
  const double initial_log_half_width = model.layer_log_half_width;
  set_layer_log_half_width(model, {});
  EXPECT_EQ(model.layer_log_half_width, initial_log_half_width);
}

TEST(EvaluationText, ListsSettingsWithUnknownOperationsInTextAndJson) {
  Evaluation evaluation;
  EXPECT_EQ(evaluation_markdown(evaluation).find("unknown operations"), std::string::npos);
  evaluation.excluded_settings = {"timm/mystery 8x224 fp32 inference"};
  EXPECT_NE(evaluation_markdown(evaluation).find("Warning: 1 settings contain unknown operations"), std::string::npos);
  EXPECT_NE(evaluation_json(evaluation).find(R"("unknown_settings":["timm/mystery 8x224 fp32 inference"])"),
            std::string::npos);
}

}  // namespace
}  // namespace joulemap::predict
