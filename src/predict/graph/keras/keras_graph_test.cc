// SPDX-License-Identifier: Apache-2.0
//
// tests/data/keras contains a small network as Keras 3.15 and tf_keras 2.21 write it, without initializers, which do
// not affect sizes.
#include "predict/graph/keras/keras_graph.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "support/keras_texts.h"

namespace joulemap::predict {
namespace {

std::string file(const std::string& name) {
  std::ifstream stream(std::string(JOULEMAP_KERAS_MODELS) + "/" + name);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

const std::string kDenseLayer = keras_layer("Dense", "dense", R"("units": 3)");

// A Functional model in the format of Keras 2, where tensors are ["name", call, tensor].
std::string make_functional_model(std::string_view layers, std::string_view inputs, std::string_view outputs) {
  return fmt::format(
      R"({{"class_name": "Functional", "config": {{"name": "model", "layers": [{}],
          "input_layers": {}, "output_layers": {}}}}})",
      layers, inputs, outputs);
}

std::string format_layer_call(std::string_view layer, std::string_view name, std::string_view inbound) {
  std::string text(layer);
  return fmt::format(R"({}, "name": "{}", "inbound_nodes": {}}})", text.substr(0, text.size() - 1), name, inbound);
}

const std::string kInputLayer =
    format_layer_call(keras_layer("InputLayer", "x", R"("batch_input_shape": [null, 8])"), "x", "[]");

TEST(KerasGraph, ReadsTheOperationsOfAKeras3Network) {
  const Result<Graph> graph = read_keras(file("tiny_cnn_keras3.json"), {.batch = 4});
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->name, "tiny_cnn");
  EXPECT_EQ(graph->format, "keras");
  EXPECT_TRUE(graph->unknown_operations.empty());
  EXPECT_EQ(graph->weight_tensor_count, 9);
  EXPECT_EQ(graph->weight_element_count, 1066);  // the count of Keras's model.trainable_weights
  const std::vector<std::string> expected = {
      "rescale rescaling batch=4;rows=1024;width=3",
      "stem convolution batch=4;channels=3;out=16;height=32;width=32;kernel=3;stride=2;padding=0;dilation=1;groups=1;"
      "bias=0;channels_last=1;out_height=16;out_width=16",
      "stem_bn normalization form=batch-inference;batch=4;channels=16;height=16;width=16",
      "stem_relu activation form=relu;batch=4;rows=256;width=16",
      "depthwise convolution batch=4;channels=16;out=16;height=16;width=16;kernel=3;stride=1;padding=1;dilation=1;"
      "groups=16;bias=1;channels_last=1",
      "pointwise convolution batch=4;channels=16;out=16;height=16;width=16;kernel=1;stride=1;padding=0;dilation=1;"
      "groups=1;bias=1;channels_last=1",
      "pointwise activation form=relu;batch=4;rows=256;width=16",
      "skip add form=same;batch=4;rows=256;width=16",
      "pool pooling form=adaptive;batch=4;channels=16;height=16;width=16;out=1",
      "dropout dropout batch=4;rows=1;width=16",
      "classes dense rows=4;in=16;out=10;bias=1",
      "classes activation form=softmax;batch=4;rows=1;width=10"};
  EXPECT_EQ(format_operations(*graph), expected);
}

TEST(KerasGraph, ReadsTheSameNetworkOfKeras2) {
  const Result<Graph> keras3_graph = read_keras(file("tiny_cnn_keras3.json"), {});
  const Result<Graph> keras2_graph = read_keras(file("tiny_cnn_keras2.json"), {});
  ASSERT_TRUE(keras3_graph && keras2_graph);
  EXPECT_EQ(format_operations(*keras3_graph), format_operations(*keras2_graph));
  EXPECT_EQ(keras3_graph->weight_element_count, keras2_graph->weight_element_count);
}

TEST(KerasGraph, AnOpenBatchIsOneWithANote) {
  const Result<Graph> graph = read_keras(keras_sequential("[null, 8]", {kDenseLayer}), {});
  ASSERT_TRUE(graph);
  EXPECT_EQ(format_operations(*graph), std::vector<std::string>{"dense dense rows=1;in=8;out=3;bias=1"});
  EXPECT_EQ(graph->notes, std::vector<std::string>{"batch 1: the model does not fix it"});
}

TEST(KerasGraph, ReplacesTheBatchOfTheFileWithANote) {
  const Result<Graph> graph = read_keras(keras_sequential("[2, 8]", {kDenseLayer}), {.batch = 16});
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->operations.back().parameters.find("rows"), 16);
  EXPECT_EQ(graph->notes, std::vector<std::string>{"batch 16 instead of the file's 2"});
}

TEST(KerasGraph, OpenSizesNeedAnInputAndTheErrorHasARemedy) {
  const std::string model = keras_sequential("[null, null, null, 3]",
                                             {keras_layer("Conv2D", "conv", R"("filters": 4, "kernel_size": [3, 3])")});
  const Result<Graph> graph_without_sizes = read_keras(model, {});
  ASSERT_FALSE(graph_without_sizes);
  EXPECT_EQ(graph_without_sizes.error().message, "the input input has unknown sizes: 1x?x?x3");
  EXPECT_EQ(graph_without_sizes.error().remedy, "set them, as in --input 1x224x224x3");
  for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{1, 32, 48, 3}, {32, 48, 3}}) {
    const Result<Graph> graph_with_sizes = read_keras(model, {.batch = 2, .inputs = {{"", sizes}}});
    ASSERT_TRUE(graph_with_sizes) << graph_with_sizes.error().message;
    EXPECT_EQ(graph_with_sizes->operations.back().parameters.find("batch"), 2);
    EXPECT_EQ(graph_with_sizes->operations.back().parameters.find("width"), 48);
  }
}

TEST(KerasGraph, TheBatchIsThatOfTheResolvedInput) {
  const std::string json = keras_sequential("[null, 8]", {kDenseLayer});
  EXPECT_EQ(read_keras(json, {.inputs = {{"", {8}}}})->batch, 1);
  EXPECT_EQ(read_keras(json, {.inputs = {{"", {4, 8}}}})->batch, 4);
}

TEST(KerasGraph, ShapesOfInputsThatTheModelLacksAreRefused) {
  const std::string json = keras_sequential("[null, 8]", {kDenseLayer});
  const Result<Graph> unknown_name = read_keras(json, {.inputs = {{"foo", {4, 8}}}});
  ASSERT_FALSE(unknown_name);
  EXPECT_EQ(unknown_name.error().code, ErrorCode::usage);
  EXPECT_EQ(unknown_name.error().message, "the network has no input 'foo'");
  EXPECT_FALSE(read_keras(json, {.inputs = {{"", {4, 8}}, {"", {4, 8}}}}));
}

TEST(KerasGraph, ASequentialWithoutAnInputUsesTheShapeOfItsFirstLayer) {
  const std::string model = R"({"class_name": "Sequential", "config": {"name": "old", "layers": [
      {"class_name": "Dense", "config": {"name": "dense", "units": 3, "batch_input_shape": [null, 5]}}]}})";
  const Result<Graph> graph = read_keras(model, {});
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(format_operations(*graph), std::vector<std::string>{"dense dense rows=1;in=5;out=3;bias=1"});
  const Result<Graph> graph_without_shape =
      read_keras(R"({"class_name": "Sequential", "config": {"layers": [)" + kDenseLayer + "]}}", {});
  ASSERT_FALSE(graph_without_shape);
  EXPECT_NE(graph_without_shape.error().remedy.find("--input"), std::string::npos);
}

TEST(KerasGraph, ASharedLayerRunsTwiceAndHasItsWeightsOnce) {
  const std::string layers =
      kInputLayer + "," + format_layer_call(kDenseLayer, "dense", R"([[["x", 0, 0, {}]], [["x", 0, 0, {}]]])") + "," +
      format_layer_call(keras_layer("Add", "add"), "add", R"([[["dense", 0, 0, {}], ["dense", 1, 0, {}]]])");
  const Result<Graph> graph = read_keras(make_functional_model(layers, R"([["x", 0, 0]])", R"([["add", 0, 0]])"), {});
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(format_operations(*graph).size(), 3);
  EXPECT_EQ(graph->weight_tensor_count, 2);
  EXPECT_EQ(graph->weight_element_count, 8 * 3 + 3);
}

TEST(KerasGraph, LayersOfNestedModelsHaveBothNames) {
  const std::string inner_model = keras_sequential("[null, 8]", {kDenseLayer}, "inner");
  // Keras 2 counts calls of nested models from 1.
  const std::string layers =
      kInputLayer + "," + format_layer_call(inner_model, "inner", R"([[["x", 0, 0, {}]]])") + "," +
      format_layer_call(keras_layer("Softmax", "softmax"), "softmax", R"([[["inner", 1, 0, {}]]])");
  const Result<Graph> graph =
      read_keras(make_functional_model(layers, R"([["x", 0, 0]])", R"([["softmax", 0, 0]])"), {});
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(format_operations(*graph),
            (std::vector<std::string>{"inner.dense dense rows=1;in=8;out=3;bias=1",
                                      "softmax activation form=softmax;batch=1;rows=1;width=3"}));
}

TEST(KerasGraph, GradientsReachTheFirstTrainableLayer) {
  const std::string frozen = keras_layer("Dense", "frozen", R"("units": 4, "trainable": false)");
  const std::string first_layer = keras_layer("Dense", "first", R"("units": 4, "activation": "relu")");
  const std::string second_layer = keras_layer("Dense", "second", R"("units": 4)");
  const std::string norm = keras_layer("BatchNormalization", "norm", R"("trainable": false)");
  const Result<Graph> graph = read_keras(keras_sequential("[1, 8]", {frozen, first_layer, second_layer, norm}), {});
  ASSERT_TRUE(graph);
  EXPECT_EQ(find_operation(*graph, "frozen", Kind::dense).gradient, NeededGradients::none);
  EXPECT_EQ(find_operation(*graph, "first", Kind::dense).gradient, NeededGradients::weights);
  EXPECT_EQ(find_operation(*graph, "first", Kind::activation).gradient, NeededGradients::all);
  EXPECT_EQ(find_operation(*graph, "second", Kind::dense).gradient, NeededGradients::all);
  EXPECT_EQ(find_operation(*graph, "norm", Kind::normalization).parameters.find("frozen"), 1);
  EXPECT_EQ(graph->weight_tensor_count, 4);
  EXPECT_EQ(graph->weight_element_count, 2 * (4 * 4 + 4));
}

TEST(KerasGraph, MixedPrecisionComputesInHalfAndCastsInputsAndWeights) {
  const std::string half_precision_layer =
      keras_layer("Dense", "half", R"("units": 4, "dtype": {"class_name": "DTypePolicy",
      "config": {"name": "mixed_bfloat16"}})");
  const std::string full_precision_layer = keras_layer("Dense", "whole", R"("units": 2, "dtype": "float32")");
  const Result<Graph> graph = read_keras(keras_sequential("[1, 8]", {half_precision_layer, full_precision_layer}), {});
  ASSERT_TRUE(graph);
  EXPECT_EQ(find_operation(*graph, "half", Kind::dense).dtype, Dtype::bf16);
  EXPECT_EQ(find_operation(*graph, "whole", Kind::dense).dtype, Dtype::fp32);
  EXPECT_EQ(format_operations(*graph),
            (std::vector<std::string>{
                "half cast form=bf16;batch=1;rows=1;width=8", "half cast form=bf16;batch=1;rows=1;width=32",
                "half cast form=bf16;batch=1;rows=1;width=4", "half dense rows=1;in=8;out=4;bias=1",
                "whole cast form=fp32;batch=1;rows=1;width=4", "whole dense rows=1;in=4;out=2;bias=1"}));
}

TEST(KerasGraph, UsesTheTypeOfTheRunWhereTheModelHasNone) {
  const Result<Graph> graph = read_keras(keras_sequential("[1, 8]", {kDenseLayer}), {.dtype = Dtype::tf32});
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->operations.back().dtype, Dtype::tf32);
}

TEST(KerasGraph, ListsALayerWithoutARuleAndBoundsItByTheFile) {
  const std::string custom_layer = R"({"module": "acme", "class_name": "Whiten", "config": {"name": "whiten"}})";
  const std::string dense_layer = R"({"class_name": "Dense", "config": {"name": "dense", "units": 3},
      "build_config": {"input_shape": [null, 6]}})";
  const Result<Graph> graph = read_keras(keras_sequential("[null, 8]", {custom_layer, dense_layer}), {.batch = 2});
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_EQ(graph->unknown_operations.size(), 1);
  EXPECT_EQ(graph->unknown_operations.front().layer, "whiten");
  EXPECT_EQ(graph->unknown_operations.front().source, "Whiten");
  EXPECT_TRUE(graph->unknown_operations.front().has_lower_bound);
  EXPECT_EQ(format_operations(*graph), (std::vector<std::string>{"whiten unknown batch=1;rows=1;width=16;in=16;out=12",
                                                                 "dense dense rows=2;in=6;out=3;bias=1"}));
}

TEST(KerasGraph, ALayerWithoutARuleAndShapesIsUnbounded) {
  const Result<Graph> graph =
      read_keras(keras_sequential("[1, 8]", {keras_layer("Lambda", "lambda"), kDenseLayer}), {});
  ASSERT_TRUE(graph);
  ASSERT_EQ(graph->unknown_operations.size(), 1);
  EXPECT_FALSE(graph->unknown_operations.front().has_lower_bound);
  EXPECT_FALSE(has_lower_bound(graph->operations[1])) << "it is not in the total";
  EXPECT_NE(graph->unknown_operations.front().reason.find("a user-defined function"), std::string::npos);
}

}  // namespace
}  // namespace joulemap::predict
