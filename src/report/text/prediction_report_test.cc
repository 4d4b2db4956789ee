// SPDX-License-Identifier: Apache-2.0
//
// Compares the output of predict and operation with the texts in tests/golden.
#include <gtest/gtest.h>

#include "report/json/prediction_json.h"
#include "report/text/energy_text.h"
#include "report/text/operation_text.h"
#include "report/text/prediction_text.h"
#include "support/golden.h"

namespace joulemap::report {
namespace {

predict::LayerPrediction layer(std::string name, std::string op, double energy_j) {
  return {.name = std::move(name),
          .op = std::move(op),
          .energy_j = energy_j,
          .low_j = 0.7 * energy_j,
          .high_j = 1.4 * energy_j,
          .time_s = energy_j / 400,
          .flops = 1e11 * energy_j,
          .bytes = 1e8 * energy_j,
          .physical_j = 0.9 * energy_j,
          .min_trust_factor = 1};
}

predict::PredictionReport prediction() {
  predict::PredictionReport report;
  report.model = "resnet18";
  report.format = "onnx";
  report.batch = 32;
  report.precision = "default";
  report.optimizer = "adamw";
  predict::Prediction& prediction = report.prediction;
  prediction.device = "NVIDIA H200";
  prediction.training = true;
  prediction.layers = {layer("/layer1/conv1/Conv", "Conv", 1.5), layer("/layer1/relu/Relu", "Relu", 0.02),
                       layer("optimizer", "adamw", 0.4)};
  prediction.idle_j = 0.18;
  prediction.energy_j = 2.1;
  prediction.low_j = 1.8;
  prediction.high_j = std::nullopt;  // none, because an operation is unknown
  prediction.gpu_s = 0.0048;
  prediction.host_s = 0.0063;
  prediction.time_s = 0.0063;
  prediction.power_w = prediction.energy_j / prediction.time_s;
  prediction.flops = 1.9e11;
  prediction.unknown_operations = {{"/roi/Align", "com.acme.RoiAlign", "an operation of the domain com.acme", true}};
  prediction.notes = {"batch 32 instead of the file's 1"};
  report.tariff = {.grid_gco2_kwh = {}, .price_kwh = 0.25, .pue = 1.2};
  report.lifetime = predict::LifetimeEnergy{.steps = 1'000'000,
                                            .inferences = 0,
                                            .step_j = 2.1,
                                            .inference_j = {},
                                            .energy_j = 2.1e6,
                                            .low_j = 1.8e6,
                                            .high_j = std::nullopt};
  report.diagnostics.add(
      {"unknown_operations", 1, "operations that are not known count as ones that read and write", ""});
  return report;
}

TEST(PredictionReport, PrintsTheEnergyOfAStepAsText) {
  expect_golden("prediction.txt", prediction_text(prediction(), 2, {CharacterSet::ascii}));
  expect_golden("prediction_wide.txt", prediction_text(prediction(), 0, {CharacterSet::unicode, 110}));
}

TEST(PredictionReport, PrintsTheEnergyOfAStepAsJson) {
  expect_golden("prediction.json", prediction_json(prediction()) + "\n");
}

TEST(PredictionReport, ExplainsALayerByPhysicsAndFeatures) {
  predict::PredictionReport report = prediction();
  predict::OperationExplanation explanation;
  explanation.operation = {.layer = "fc",
                           .source = "Gemm",
                           .kind = predict::Kind::dense,
                           .form = "",
                           .parameters = {{"rows", 32}, {"in", 512}, {"out", 1000}, {"bias", 1}}};
  explanation.work = compute_work(explanation.operation);
  explanation.datasheet_terms = {1e-6, 2e-6, 1e-6, 0, 0, 5e-7};
  explanation.physical_terms = {3e-6, 3e-6, 1e-6, 0, 0, 0};
  explanation.estimate = {
      .time_s = 8e-6, .energy_j = 0.0016, .physical_time_s = 7e-6, .physical_power_w = 200, .trust_factor = 1};
  explanation.physical_j = 0.0014;
  explanation.tree_factor = 0.0016 / 0.0014;
  explanation.features.assign(predict::feature_names().size(), 1.5F);
  report.explained_layer = "fc";
  report.explanation = {explanation};
  const std::string text = prediction_explanation_text(report, {CharacterSet::ascii});
  for (const char* part :
       {"Explanation of fc", "rows=32;in=512;out=1000;bias=1", "weight 100%", "1.14 x energy", "launch"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  const std::string json = prediction_json(report);
  for (const char* part :
       {"\"explanation\":{\"layer\":\"fc\"", "\"tree_factor\"", "\"granted_s\"", "\"cache_fill\":1.5"}) {
    EXPECT_NE(json.find(part), std::string::npos) << part;
  }
}

TEST(PredictionReport, EscapesNamesFromAFile) {
  predict::PredictionReport report = prediction();
  report.model = "\x1b[2Jgone";
  report.prediction.layers.front().name = "a\nb";
  const std::string text = prediction_text(report, 0, {CharacterSet::ascii});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find("a\nb"), std::string::npos);
}

TEST(PredictionReport, ChoosesTheUnitByTheSizeOfAnEnergy) {
  EXPECT_EQ(energy_text(0.0123), "12.3 mJ");
  EXPECT_EQ(energy_text(2.5e6), "2.50 MJ");
  EXPECT_EQ(energy_text(0), "0 J");
  EXPECT_EQ(interval_text(0.0123, 0.009, 0.0151), "12.3 mJ (9.00 .. 15.1)");
}

TEST(OperationReport, HasALinePerSizeAndPrecisionWithTheBackwardPass) {
  predict::OperationTable table;
  table.subject = {"torch.nn.Linear", predict::Kind::dense, "", ""};
  table.device = "NVIDIA H200";
  for (const predict::Dtype dtype : {predict::Dtype::fp32, predict::Dtype::bf16}) {
    for (const predict::Pass pass : {predict::Pass::forward, predict::Pass::backward}) {
      predict::Operation operation;
      operation.dtype = dtype;
      operation.pass = pass;
      operation.parameters = {{"rows", 64}};
      table.rows.push_back(
          {"64 x 1024 -> 1024", false, operation, 12e-6, 0.004, 1.3e8, 4e6, predict::LimitingResource::memory, 1});
    }
  }
  table.advice = {"At 64 x 1024 -> 1024 bf16 saves almost no energy compared with fp32."};
  expect_golden("card.txt", operation_table_text(table, {CharacterSet::ascii}));
  expect_golden("card.json", operation_table_json(table) + "\n");
}

}  // namespace
}  // namespace joulemap::report
