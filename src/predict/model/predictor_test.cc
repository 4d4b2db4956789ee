// SPDX-License-Identifier: Apache-2.0
#include "predict/model/predictor.h"

#include <gtest/gtest.h>

#include "predict/evaluation/evaluation.h"

namespace joulemap::predict {
namespace {

Operation convolution(std::string layer, std::int64_t batch) {
  Operation operation;
  operation.layer = std::move(layer);
  operation.source = "Conv";
  operation.kind = Kind::convolution;
  operation.parameters = {{"batch", batch}, {"channels", 256}, {"out", 256},  {"height", 56},
                          {"width", 56},    {"kernel", 3},     {"stride", 1}, {"padding", 1},
                          {"dilation", 1},  {"groups", 1},     {"bias", 0}};
  operation.dtype = Dtype::tf32;
  return operation;
}

Graph network(std::int64_t batch) {
  Graph graph;
  graph.operations = {convolution("first", batch), convolution("second", batch)};
  graph.operations.front().gradient = NeededGradients::weights;
  graph.weight_tensor_count = 2;
  graph.weight_element_count = 2 * 256 * 256 * 9;
  return graph;
}

TEST(Predictor, LayersAndWaitingSumToTheTotal) {
  const DeviceProfile profile = h200_profile();
  for (const bool training : {false, true}) {
    const Prediction prediction = predict(profile, network(64), {.training = training});
    double sum_j = prediction.idle_j;
    for (const LayerPrediction& layer : prediction.layers) sum_j += layer.energy_j;
    EXPECT_NEAR(sum_j, prediction.energy_j, 1e-6 * prediction.energy_j);
    EXPECT_LT(prediction.low_j, prediction.energy_j);
    EXPECT_GT(prediction.high_j, prediction.energy_j);
    EXPECT_NEAR(prediction.power_w * prediction.time_s, prediction.energy_j, 1e-9);
  }
}

TEST(Predictor, AtThePowerLimitTheGpuNeverWaitsAndLayersTakeTheWholeTime) {
  DeviceProfile profile = h200_profile();
  const Prediction unlimited_prediction = predict(profile, network(256), {});
  profile.network_model.power_limit_w = 0.8 * unlimited_prediction.power_w;
  const Prediction prediction = predict(profile, network(256), {});
  EXPECT_NEAR(prediction.power_w, profile.network_model.power_limit_w, 1e-6);
  EXPECT_EQ(prediction.gpu_s, prediction.time_s);
  EXPECT_EQ(prediction.idle_j, 0);
  double layers_j = 0;
  double layers_s = 0;
  for (const LayerPrediction& layer : prediction.layers) {
    layers_j += layer.energy_j;
    layers_s += layer.time_s;
  }
  EXPECT_NEAR(layers_j, prediction.energy_j, 1e-6 * prediction.energy_j);
  EXPECT_NEAR(layers_s, prediction.time_s, 1e-6 * prediction.time_s);
}

TEST(Predictor, TrainingCostsMoreThanInferenceAndALargeBatchMoreThanASmallOne) {
  const DeviceProfile profile = h200_profile();
  const double inference_j = predict(profile, network(64), {}).energy_j;
  EXPECT_GT(predict(profile, network(64), {.training = true}).energy_j, 2 * inference_j);
  EXPECT_GT(predict(profile, network(256), {}).energy_j, 3 * inference_j);
}

TEST(Predictor, AConvolutionOfKnownCostIsPredictedWithinItsInterval) {
  // 64 x 256 channels x 56 x 56, 3 x 3: 237 GFLOP, which an H200 computes in TF32 in about 0.9 ms at 650 W.
  const Prediction prediction = predict(h200_profile(), network(64), {});
  EXPECT_GT(prediction.layers.front().time_s, 0.4e-3);
  EXPECT_LT(prediction.layers.front().time_s, 2.5e-3);
  EXPECT_GT(prediction.power_w, 300);
  EXPECT_LT(prediction.power_w, 800);
}

TEST(Predictor, ALayerIsNamedByItsCostliestOperation) {
  Graph graph;
  for (const auto& [source, batch] :
       std::vector<std::pair<std::string, std::int64_t>>{{"a", 48}, {"b", 32}, {"c", 64}}) {
    graph.operations.push_back(convolution("layer", batch));
    graph.operations.back().source = source;
  }
  const Prediction prediction = predict(h200_profile(), graph, {});
  ASSERT_EQ(prediction.layers.size(), 1u);
  EXPECT_EQ(prediction.layers.front().op, "c");
}

TEST(Predictor, ASlowHostMakesASmallNetworkCostMore) {
  const DeviceProfile profile = h200_profile();
  Graph small_network = network(1);
  for (int index = 0; index < 200; ++index) small_network.operations.push_back(convolution("more", 1));
  const Prediction fast_host_prediction = predict(profile, small_network, {});
  const Prediction slow_host_prediction = predict(profile, small_network, {.machine = {.host_factor = 3}});
  EXPECT_GT(slow_host_prediction.time_s, 1.3 * fast_host_prediction.time_s);
  EXPECT_GT(slow_host_prediction.idle_j, fast_host_prediction.idle_j);
}

TEST(Predictor, UnknownOperationsGiveALowerBoundAndUnboundedOnesAnInvalidTotal) {
  const DeviceProfile profile = h200_profile();
  Graph graph = network(8);
  Operation unknown;
  unknown.layer = "custom";
  unknown.source = "Mystery";
  unknown.parameters = {{"in", 10'000'000}, {"out", 10'000'000}};
  graph.operations.push_back(unknown);
  graph.unknown_operations.push_back({"custom", "Mystery", "nobody knows it", true});
  const Prediction bounded_prediction = predict(profile, graph, {});
  EXPECT_TRUE(bounded_prediction.is_total_sound);
  EXPECT_TRUE(is_lower_bound(bounded_prediction));
  EXPECT_FALSE(bounded_prediction.high_j) << "nobody knows how much more it uses";
  for (const LayerPrediction& layer : bounded_prediction.layers)
    EXPECT_EQ(layer.high_j.has_value(), layer.name != "custom");
  const Prediction complete_prediction = predict(profile, network(8), {});
  EXPECT_FALSE(is_lower_bound(complete_prediction));
  EXPECT_TRUE(complete_prediction.high_j);
  EXPECT_GT(bounded_prediction.energy_j, complete_prediction.energy_j);
  graph.unknown_operations.front().has_lower_bound = false;
  EXPECT_FALSE(predict(profile, graph, {}).is_total_sound);
}

TEST(Predictor, UnknownOperationsWithoutSizesAddNothingToTheTotal) {
  const DeviceProfile profile = h200_profile();
  const Prediction complete_prediction = predict(profile, network(8), {});
  Graph graph = network(8);
  Operation unknown;
  unknown.layer = "custom";
  unknown.source = "Shape";
  for (int i = 0; i < 200; ++i) {
    graph.operations.push_back(unknown);
    graph.unknown_operations.push_back({"custom", "Shape", "its sizes are unknown", false});
  }
  const Prediction prediction = predict(profile, graph, {});
  EXPECT_EQ(prediction.energy_j, complete_prediction.energy_j);
  EXPECT_EQ(prediction.host_s, complete_prediction.host_s);
  EXPECT_EQ(prediction.layers.back().name, "custom");
  EXPECT_EQ(prediction.layers.back().energy_j, 0);
  EXPECT_FALSE(prediction.layers.back().high_j);
}

TEST(DeviceProfile, FittingAndPredictionUseTheSameIdlePower) {
  const DeviceProfile profile = h200_profile();
  EXPECT_EQ(profile.network_model.idle_w, profile.operation_model.datasheet.idle_w);
  DeviceProfile modified_profile = profile;
  modified_profile.network_model.idle_w += 1.5;  // profiles of earlier versions had a different value here
  EXPECT_EQ(read_profile(profile_json(modified_profile), "test")->network_model.idle_w,
            profile.operation_model.datasheet.idle_w);
}

TEST(DeviceProfile, DeviceProfileRoundTripsThroughText) {
  const DeviceProfile profile = h200_profile();
  const std::string json = profile_json(profile);
  EXPECT_LT(json.size(), 1'000'000U);
  const Result<DeviceProfile> parsed_profile = read_profile(json, "test");
  ASSERT_TRUE(parsed_profile) << parsed_profile.error().message;
  EXPECT_NEAR(predict(*parsed_profile, network(16), {}).energy_j, predict(profile, network(16), {}).energy_j, 1e-4);
}

TEST(DeviceProfile, RefusesTextsThatAreNoProfile) {
  EXPECT_FALSE(read_profile("{}", "test"));
  EXPECT_FALSE(read_profile("no json", "test"));
  EXPECT_FALSE(read_profile(R"({"schema": "joulemap.profile/3", "device": "x"})", "test"));
}

std::string replace_json_number(std::string json, const std::string& name, const std::string& value) {
  const std::size_t value_position = json.find("\"" + name + "\":") + name.size() + 3;
  return json.replace(value_position, json.find_first_of(",}", value_position) - value_position, value);
}

TEST(DeviceProfile, RefusesImpossibleNumbers) {
  const std::string json = profile_json(h200_profile());
  ASSERT_TRUE(read_profile(replace_json_number(json, "gpu_time_scale", "2"), "test"));
  for (const char* name :
       {"gpu_time_scale", "inference_width", "python_per_call", "memory_bytes_per_s", "dense|forward"}) {
    for (const char* value : {"-1", "1e300", "null", "\"text\""}) {
      EXPECT_FALSE(read_profile(replace_json_number(json, name, value), "test")) << name << " " << value;
    }
  }
  const Result<DeviceProfile> tiny_scale_profile =
      read_profile(replace_json_number(json, "gpu_time_scale", "1e-308"), "test");
  ASSERT_TRUE(tiny_scale_profile);
  EXPECT_TRUE(read_profile(profile_json(*tiny_scale_profile), "again"));
  EXPECT_FALSE(read_profile(replace_json_number(json, "time_trees", "\"1e9\""), "test"));
}

TEST(DeviceProfile, ScalesAGpuWithoutAProfileByItsDatasheetWithWideIntervals) {
  const Result<DeviceProfile> a100 = find_device_profile("a100");
  ASSERT_TRUE(a100);
  EXPECT_EQ(a100->basis, ProfileBasis::datasheet);
  const Prediction a100_prediction = predict(*a100, network(64), {});
  const Prediction h200_prediction = predict(h200_profile(), network(64), {});
  EXPECT_FALSE(a100_prediction.has_fitted_profile);
  EXPECT_GT(a100_prediction.time_s, h200_prediction.time_s);
  EXPECT_GT(a100_prediction.high_j.value() / a100_prediction.low_j,
            h200_prediction.high_j.value() / h200_prediction.low_j);
  EXPECT_FALSE(find_device_profile("Voodoo 2"));
}

TEST(Score, ComputesErrorsAndCoverage) {
  const std::vector<NetworkCase> cases = {{"a", "A", false, 100, 110, 1, 1, 0, 90, 130},
                                          {"b", "B", false, 200, 180, 1, 1, 0, 170, 190}};
  const Score total = score_predictions(std::span<const NetworkCase>(cases));
  EXPECT_NEAR(total.rmspe, 0.1, 1e-12);
  EXPECT_NEAR(total.bias, 0, 1e-12);
  EXPECT_NEAR(total.coverage, 0.5, 1e-12);
  EXPECT_NEAR(total.tau, 1, 1e-12);
}

TEST(Predictor, GpusOfThePapersAreScaledFromTheirDatasheetsWithWideIntervals) {
  const double h200_j = predict(h200_profile(), network(64), {}).energy_j;
  for (const char* name : {"rtx 2070", "NVIDIA GeForce RTX 3080", "Quadro P5000"}) {
    const Result<DeviceProfile> profile = find_device_profile(name);
    ASSERT_TRUE(profile) << name;
    EXPECT_EQ(profile->basis, ProfileBasis::datasheet) << name;
    const Prediction prediction = predict(*profile, network(64), {});
    EXPECT_LT(prediction.power_w, 1.2 * profile->network_model.power_limit_w) << name;
    EXPECT_GT(prediction.energy_j, h200_j) << name;
    EXPECT_GT(*prediction.high_j / prediction.low_j, 3) << name << ": not measured";
  }
}

}  // namespace
}  // namespace joulemap::predict
