// SPDX-License-Identifier: Apache-2.0
#include "predict/model/prediction_report.h"

#include <gtest/gtest.h>

#include "predict/graph/graph_file.h"

namespace joulemap::predict {
namespace {

// A network of two layers, as traced from PyTorch.
Graph make_two_layer_graph() {
  Graph graph;
  graph.name = "Sequential";
  graph.format = "torch";
  Operation dense_operation{.layer = "0",
                            .source = "aten.addmm",
                            .kind = Kind::dense,
                            .form = "",
                            .parameters = {{"rows", 64}, {"in", 512}, {"out", 512}, {"bias", 1}}};
  Operation relu{.layer = "1",
                 .source = "aten.relu",
                 .kind = Kind::activation,
                 .form = "relu",
                 .parameters = {{"batch", 1}, {"rows", 64}, {"width", 512}}};
  graph.operations = {dense_operation, relu};
  graph.weight_tensor_count = 2;
  graph.weight_element_count = 512 * 513;
  return graph;
}

TEST(PredictionReport, LayersAndWaitingSumToTheTotal) {
  const Result<PredictionReport> report = report_prediction(h200_profile(), make_two_layer_graph(), {});
  ASSERT_TRUE(report);
  double sum_j = report->prediction.idle_j;
  for (const LayerPrediction& layer : report->prediction.layers) sum_j += layer.energy_j;
  EXPECT_NEAR(sum_j, report->prediction.energy_j, 1e-9 + 1e-6 * sum_j);
  EXPECT_EQ(report->precision, "traced");
  EXPECT_FALSE(report->prediction.training);
}

TEST(PredictionReport, HigherIdlePowerAppliesToEveryLayerAndWaiting) {
  const double mean_w = h200_profile().operation_model.datasheet.idle_w;
  const Result<PredictionReport> mean = report_prediction(h200_profile(), make_two_layer_graph(), {.idle_w = mean_w});
  const Result<PredictionReport> high_idle_report =
      report_prediction(h200_profile(), make_two_layer_graph(), {.idle_w = mean_w + 16});
  ASSERT_TRUE(mean && high_idle_report);
  const Prediction& high_idle_prediction = high_idle_report->prediction;
  EXPECT_NEAR(high_idle_prediction.energy_j - mean->prediction.energy_j, 16 * high_idle_prediction.time_s,
              1e-6 * high_idle_prediction.energy_j);
  double sum_j = high_idle_prediction.idle_j;
  for (const LayerPrediction& layer : high_idle_prediction.layers) sum_j += layer.energy_j;
  EXPECT_NEAR(sum_j, high_idle_prediction.energy_j, 1e-9 + 1e-6 * sum_j);
}

TEST(PredictionReport, ALifetimeSumsTrainingStepsAndInferencePasses) {
  const Result<PredictionReport> report =
      report_prediction(h200_profile(), make_two_layer_graph(), {.steps = 100, .inferences = 1000});
  ASSERT_TRUE(report);
  ASSERT_TRUE(report->lifetime);
  const LifetimeEnergy& life = *report->lifetime;
  ASSERT_TRUE(life.step_j && life.inference_j);
  EXPECT_GT(*life.step_j, *life.inference_j);
  EXPECT_DOUBLE_EQ(*life.inference_j, report->prediction.energy_j);
  EXPECT_NEAR(life.energy_j, 100 * *life.step_j + 1000 * *life.inference_j, 1e-6 * life.energy_j);
  EXPECT_LT(life.low_j, life.energy_j);
}

TEST(PredictionReport, ExplainsTheLayerWithTheMostEnergyByDefault) {
  const Result<PredictionReport> report =
      report_prediction(h200_profile(), make_two_layer_graph(), {.explained_layer = ""});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->explained_layer, "0");
  ASSERT_EQ(report->explanation.size(), 1U);
  const OperationExplanation& explanation = report->explanation.front();
  EXPECT_EQ(explanation.work.flops, 2.0 * 64 * 512 * 512);
  EXPECT_EQ(explanation.features.size(), feature_names().size());
  EXPECT_NEAR(explanation.physical_j * explanation.tree_factor, explanation.estimate.energy_j, 1e-12);
}

TEST(PredictionReport, SuggestsNearNamesForAnUnknownLayer) {
  const Result<PredictionReport> report =
      report_prediction(h200_profile(), make_two_layer_graph(), {.explained_layer = "7"});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::usage);
  EXPECT_NE(report.error().remedy.find('0'), std::string::npos);
}

TEST(PredictionReport, AGraphWithoutOperationsIsAnError) {
  EXPECT_FALSE(report_prediction(h200_profile(), Graph{}, {}));
}

TEST(PredictionReport, ATracedListPreservesItsTypes) {
  const Result<PredictionReport> report =
      report_prediction(h200_profile(), make_two_layer_graph(), {.precision = Precision::bf16});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::usage);
  EXPECT_NE(report.error().remedy.find("precision=\"tf32\""), std::string::npos) << "a parameter of list_operations";
}

TEST(PredictionReport, CarbonAndPriceIncludePue) {
  const Footprint footprint = compute_footprint(3.6e6, {.grid_gco2_kwh = 100, .price_kwh = 0.5, .pue = 1.5});
  EXPECT_DOUBLE_EQ(footprint.co2_kg, 0.15);
  EXPECT_DOUBLE_EQ(footprint.price.value(), 0.75);
  EXPECT_DOUBLE_EQ(compute_footprint(3.6e6, {}).co2_kg, 0.4);
  EXPECT_FALSE(compute_footprint(3.6e6, {}).price);
}

TEST(GraphFile, OtherContentIsAnErrorWithARemedy) {
  using namespace std::string_view_literals;
  for (const std::string_view bytes : {""sv, "PK\x03\x04 rest"sv, "\x89HDF rest"sv, "{\"a\": 1}"sv, "  [1, 2]"sv}) {
    const Result<Graph> graph = read_graph(bytes, {});
    ASSERT_FALSE(graph);
    EXPECT_FALSE(graph.error().remedy.empty()) << graph.error().message;
  }
}

TEST(GraphFile, ATracedListRefusesOtherSizes) {
  const Result<Graph> graph = read_graph(R"({"schema": "joulemap.operations/1"})", {.batch = 4});
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, ErrorCode::usage);
}

}  // namespace
}  // namespace joulemap::predict
