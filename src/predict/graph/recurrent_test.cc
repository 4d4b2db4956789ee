// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/recurrent.h"

#include <gtest/gtest.h>

#include <utility>

#include "predict/model/operation_model.h"
#include "predict/model/predictor.h"

namespace joulemap::predict {
namespace {

Operation recurrent(std::string operation_form, OperationParameters sizes, Dtype dtype = Dtype::tf32,
                    Pass pass = Pass::forward) {
  Operation operation;
  operation.layer = "rnn";
  operation.source = "aten." + operation_form;
  operation.kind = Kind::recurrent;
  operation.form = std::move(operation_form);
  operation.parameters = std::move(sizes);
  operation.dtype = dtype;
  operation.pass = pass;
  return operation;
}

Operation make_lstm(std::int64_t steps, std::int64_t hidden_width, std::int64_t layers = 1,
                    std::int64_t directions = 1) {
  return recurrent("lstm", {{"batch", 32},
                            {"steps", steps},
                            {"in", hidden_width},
                            {"hidden", hidden_width},
                            {"layers", layers},
                            {"directions", directions},
                            {"bias", 1}});
}

// The built-in profile without its measurements of recurrent layers.
DeviceProfile make_profile_without_recurrent() {
  DeviceProfile profile = h200_profile();
  std::erase_if(profile.operation_model.times, [](const auto& group) { return group.first.starts_with("recurrent"); });
  std::erase_if(profile.operation_model.energy_coefficients,
                [](const auto& group) { return group.first.starts_with("recurrent"); });
  profile.operation_model.kriging = {};
  return profile;
}

TEST(Recurrent, RecurrentWorkHasTheProductsOfAllStepsLayersAndDirections) {
  const Operation bidirectional_gru = recurrent(
      "gru", {{"batch", 4}, {"steps", 10}, {"in", 6}, {"hidden", 8}, {"layers", 2}, {"directions", 2}, {"bias", 1}});
  const double matrices = 2 * (24 * (6 + 8) + 24 * (16 + 8));
  const OperationWork work = compute_work(bidirectional_gru);
  EXPECT_DOUBLE_EQ(work.weights, matrices + 2 * 2 * 2 * 24);
  EXPECT_DOUBLE_EQ(work.flops, 2 * 40 * matrices + 2 * 2 * 40 * 24);
  EXPECT_DOUBLE_EQ(work.inputs, 40 * 6);
  EXPECT_DOUBLE_EQ(work.outputs, 40 * 16);
  Operation backward = bidirectional_gru;
  backward.pass = Pass::backward;
  EXPECT_DOUBLE_EQ(compute_work(backward).flops, 2 * work.flops);
}

TEST(Recurrent, AProjectionNarrowsStatesAndOutputs) {
  const Operation projected_recurrent = recurrent("lstm", {{"batch", 1},
                                                           {"steps", 1},
                                                           {"in", 6},
                                                           {"hidden", 8},
                                                           {"layers", 1},
                                                           {"directions", 1},
                                                           {"bias", 0},
                                                           {"projection", 3}});
  EXPECT_DOUBLE_EQ(compute_work(projected_recurrent).weights, 32 * (6 + 3) + 8 * 3);
  EXPECT_DOUBLE_EQ(compute_work(projected_recurrent).outputs, 3);
  EXPECT_EQ(recurrent_algorithm(projected_recurrent), RecurrentAlgorithm::standard);
}

TEST(Recurrent, PyTorchChoosesTheAlgorithmByWidthTypeAndBatch) {
  EXPECT_EQ(recurrent_algorithm(make_lstm(64, 128)), RecurrentAlgorithm::persistent_small);
  EXPECT_EQ(recurrent_algorithm(make_lstm(64, 256)), RecurrentAlgorithm::standard);
  Operation half_precision_lstm = make_lstm(64, 512);
  half_precision_lstm.dtype = Dtype::fp16;
  EXPECT_EQ(recurrent_algorithm(half_precision_lstm), RecurrentAlgorithm::persistent);
  half_precision_lstm.parameters.set("layers", 2);
  EXPECT_EQ(recurrent_algorithm(half_precision_lstm), RecurrentAlgorithm::standard);
  Operation backward = make_lstm(64, 160);
  EXPECT_EQ(recurrent_algorithm(backward), RecurrentAlgorithm::persistent_small);
  backward.pass = Pass::backward;
  EXPECT_EQ(recurrent_algorithm(backward), RecurrentAlgorithm::standard);
}

TEST(Recurrent, AStandardCallLaunchesKernelsForEveryStepAndAPersistentOneDoesNot) {
  EXPECT_DOUBLE_EQ(recurrent_kernels(make_lstm(100, 512, 2, 2)), 4 + 2 * 4 * 100);
  EXPECT_DOUBLE_EQ(recurrent_kernels(make_lstm(100, 128)), 2);
}

TEST(Recurrent, TimeGrowsWithSequentialStepsAndHardlyWithTheBatch) {
  const DeviceProfile profile = make_profile_without_recurrent();
  const auto time_s = [&](const Operation& operation) {
    return estimate(profile.operation_model, operation, {false, true}).time_s;
  };
  const double baseline_time_s = time_s(make_lstm(128, 256));
  EXPECT_GT(baseline_time_s, 128 * 4e-6);
  EXPECT_LT(baseline_time_s, 128 * 15e-6);
  EXPECT_NEAR(time_s(make_lstm(512, 256)) / baseline_time_s, 4, 0.4);
  Operation small_batch_lstm = make_lstm(128, 256);
  small_batch_lstm.parameters.set("batch", 1);
  EXPECT_GT(time_s(small_batch_lstm), 0.8 * baseline_time_s);
}

TEST(Recurrent, WithoutMeasurementsTheIntervalSpansAFactorOfThreeWithANote) {
  Graph graph;
  graph.format = "torch";
  graph.operations = {make_lstm(128, 256, 2)};
  const Prediction prediction = predict(make_profile_without_recurrent(), graph, {});
  EXPECT_EQ(prediction.unmeasured_kinds, std::vector<std::string>{"recurrent"});
  ASSERT_TRUE(prediction.high_j);
  EXPECT_GT(*prediction.high_j, 2.5 * prediction.energy_j);
  EXPECT_LT(prediction.low_j, prediction.energy_j / 2.5);
  EXPECT_EQ(prediction.layers.front().min_trust_factor, 0);
}

// A regression: an earlier version predicted 0.016 J, less than the idle energy of a GPU during 256 steps.
TEST(Recurrent, ALayerUsesAtLeastIdlePowerDuringItsSteps) {
  Graph graph;
  graph.format = "torch";
  graph.operations = {make_lstm(128, 256, 2)};
  const DeviceProfile profile = h200_profile();
  EXPECT_GT(predict(profile, graph, {}).energy_j, profile.network_model.idle_w * 128 * 3e-6);
}

TEST(Recurrent, StacksLayersOfMatchingSizes) {
  Operation stack = make_lstm(16, 64);
  EXPECT_TRUE(is_next_recurrent_layer(stack, make_lstm(16, 64)));
  EXPECT_FALSE(is_next_recurrent_layer(stack, make_lstm(16, 32)));
  EXPECT_FALSE(is_next_recurrent_layer(stack, make_lstm(16, 64, 1, 2)));
  append_recurrent_layer(stack, make_lstm(16, 64));
  EXPECT_EQ(stack.parameters.get("layers", 0), 2);
  EXPECT_EQ(stack.layer, "rnn");
}

}  // namespace
}  // namespace joulemap::predict
