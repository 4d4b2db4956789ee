// SPDX-License-Identifier: Apache-2.0
//
// Tests the operations of each layer class. A Flatten after the layer shows the size of its output: its view has
// `width` elements.
#include "predict/graph/keras/layer_rules.h"

#include <gtest/gtest.h>

#include "support/keras_texts.h"

namespace joulemap::predict {
namespace {

using Lines = std::vector<std::string>;

struct ModelSummary {
  Lines lines;
  std::int64_t weights = 0;
  std::int64_t tensors = 0;
  std::int64_t out = 0;  // elements of the output
};

ModelSummary read(std::string_view shape, std::string_view class_name, std::string_view config = "") {
  const Result<Graph> graph =
      read_keras(keras_sequential(shape, {keras_layer(class_name, "l", config), keras_layer("Flatten", "end")}), {});
  EXPECT_TRUE(graph) << class_name << ": " << graph.error().message;
  if (!graph) return {};
  EXPECT_TRUE(graph->unknown_operations.empty()) << class_name;
  ModelSummary model_summary{format_operations(*graph), graph->weight_element_count, graph->weight_tensor_count,
                             graph->operations.back().parameters.get("width", 0)};
  model_summary.lines.pop_back();
  return model_summary;
}

TEST(KerasLayers, TranslatesConvolutionsOfEveryDimension) {
  const ModelSummary line = read("[1, 100, 8]", "Conv1D", R"("filters": 4, "kernel_size": [5], "padding": "causal")");
  EXPECT_EQ(line.lines, Lines{"l convolution batch=1;channels=8;out=4;height=1;width=100;kernel=1;stride=1;padding=0;"
                              "dilation=1;groups=1;bias=1;channels_last=1;kernel_width=5;padding_width=2"});
  EXPECT_EQ(line.weights, 5 * 8 * 4 + 4);
  EXPECT_EQ(line.out, 400);

  const ModelSummary strided_convolution =
      read("[1, 3, 28, 30]", "Conv2D",
           R"("filters": 4, "kernel_size": [3, 3], "strides": [2, 2], "padding": "same",
                             "data_format": "channels_first", "use_bias": false, "activation": "swish")");
  EXPECT_EQ(strided_convolution.lines,
            (Lines{"l convolution batch=1;channels=3;out=4;height=28;width=30;kernel=3;stride=2;padding=0;"
                   "dilation=1;groups=1;bias=0;channels_last=0;out_height=14;out_width=15",
                   "l activation form=silu;batch=1;rows=56;width=15"}));

  const ModelSummary conv3d_summary = read("[1, 8, 9, 10, 2]", "Conv3D", R"("filters": 4, "kernel_size": [3, 2, 1])");
  EXPECT_EQ(conv3d_summary.lines,
            Lines{"l convolution batch=1;channels=2;out=4;height=9;width=10;kernel=2;stride=1;padding=0;"
                  "dilation=1;groups=1;bias=1;channels_last=1;kernel_width=1;depth=8;kernel_depth=3;"
                  "out_depth=6"});
  EXPECT_EQ(conv3d_summary.out, 6 * 8 * 10 * 4);
}

TEST(KerasLayers, TranslatesGroupedAndDepthwiseConvolutions) {
  EXPECT_EQ(read("[1, 8, 8, 16]", "Conv2D", R"("filters": 32, "kernel_size": 3, "groups": 4)").weights,
            3 * 3 * 4 * 32 + 32);
  const ModelSummary depthwise =
      read("[1, 8, 8, 16]", "DepthwiseConv2D", R"("kernel_size": [3, 3], "depth_multiplier": 2)");
  EXPECT_EQ(depthwise.weights, 3 * 3 * 16 * 2 + 32);
  EXPECT_EQ(depthwise.out, 6 * 6 * 32);
  const ModelSummary separable = read("[1, 8, 8, 16]", "SeparableConv2D", R"("filters": 5, "kernel_size": [3, 3])");
  EXPECT_EQ(separable.lines.size(), 2);
  EXPECT_EQ(separable.weights, 3 * 3 * 16 + 16 * 5 + 5);
  EXPECT_EQ(separable.tensors, 3);
}

TEST(KerasLayers, TransposedConvolutionsEnlargeImages) {
  const ModelSummary transposed_convolution =
      read("[1, 7, 7, 4]", "Conv2DTranspose",
           R"("filters": 2, "kernel_size": [3, 3], "strides": [2, 2], "padding": "same")");
  EXPECT_EQ(transposed_convolution.lines,
            Lines{"l convolution batch=1;channels=4;out=2;height=7;width=7;kernel=3;stride=2;padding=1;"
                  "dilation=1;groups=1;bias=1;channels_last=1;out_height=14;out_width=14;transposed=1"});
  EXPECT_EQ(read("[1, 7, 7, 4]", "Conv2DTranspose", R"("filters": 2, "kernel_size": 4, "strides": 3,
                 "output_padding": [1, 1])")
                .out,
            2 * 23 * 23);
}

TEST(KerasLayers, TranslatesPoolingLayers) {
  EXPECT_EQ(read("[1, 9, 9, 4]", "MaxPooling2D", R"("pool_size": [2, 2], "strides": null)").lines,
            Lines{"l pooling form=max;batch=1;channels=4;height=9;width=9;kernel=2;stride=2;padding=0"});
  EXPECT_EQ(read("[1, 9, 9, 4]", "AveragePooling2D", R"("pool_size": [2, 2], "padding": "same")").out, 5 * 5 * 4);
  EXPECT_EQ(read("[1, 8, 8, 8, 4]", "MaxPooling3D", R"("pool_size": [2, 2, 2])").lines,
            Lines{"l pooling form=max;batch=1;channels=4;height=64;width=8;kernel=4;stride=4;padding=0;kernel_width=2;"
                  "stride_width=2;out_height=16;out_width=4"});
  EXPECT_EQ(read("[1, 10, 4]", "GlobalMaxPooling1D").lines,
            Lines{"l pooling form=adaptive;batch=1;channels=4;height=1;width=10;out=1"});
}

TEST(KerasLayers, TranslatesLayersThatChangeImageSizes) {
  EXPECT_EQ(read("[1, 8, 8, 3]", "ZeroPadding2D", R"("padding": [[0, 1], [0, 1]])").lines,
            Lines{"l padding form=constant;batch=1;channels=3;height=8;width=8;padding=0;out_height=9;out_width=9"});
  EXPECT_EQ(read("[1, 8, 8, 3]", "Cropping2D", R"("cropping": [[1, 2], [3, 4]])").out, 5 * 1 * 3);
  EXPECT_EQ(read("[1, 8, 8, 3]", "UpSampling2D", R"("size": [2, 2], "interpolation": "bilinear")").lines,
            Lines{"l resize form=bilinear;batch=1;channels=3;height=8;width=8;out=16"});
  EXPECT_EQ(read("[1, 8, 8, 3]", "Resizing", R"("height": 4, "width": 6)").out, 4 * 6 * 3);
}

TEST(KerasLayers, TranslatesNormalizationLayers) {
  EXPECT_EQ(read("[2, 4, 5, 6]", "LayerNormalization", R"("axis": [-1])").lines,
            Lines{"l normalization form=layer;batch=40;channels=6;height=1;width=1"});
  EXPECT_EQ(read("[2, 6, 4, 5]", "BatchNormalization", R"("axis": 1)").lines,
            Lines{"l normalization form=batch-inference;batch=2;channels=6;height=4;width=5"});
  EXPECT_EQ(read("[2, 4, 5, 8]", "GroupNormalization", R"("groups": 4)").weights, 16);
  EXPECT_EQ(read("[2, 8]", "RMSNormalization").weights, 8);
  EXPECT_EQ(read("[2, 8]", "UnitNormalization").weights, 0);
}

TEST(KerasLayers, TranslatesActivationsAndNoOps) {
  EXPECT_EQ(read("[1, 8]", "ReLU", R"("max_value": 6.0)").lines,
            Lines{"l activation form=relu6;batch=1;rows=1;width=8"});
  EXPECT_EQ(read("[1, 4, 5, 6]", "PReLU", R"("shared_axes": [1, 2])").weights, 6);
  EXPECT_EQ(read("[1, 4, 5, 6]", "Softmax", R"("axis": 1)").lines,
            Lines{"l activation form=softmax;batch=1;rows=30;width=4"});
  EXPECT_EQ(read("[1, 8]", "Activation", R"("activation": {"class_name": "function", "config": "mish"})").lines,
            Lines{"l activation form=mish;batch=1;rows=1;width=8"});
  EXPECT_EQ(read("[1, 8]", "RandomFlip").lines, Lines{"l view batch=1;rows=1;width=8"});
  EXPECT_EQ(read("[1, 8]", "Dropout", R"("rate": 0)").lines, Lines{"l view batch=1;rows=1;width=8"});
}

TEST(KerasLayers, TranslatesProductsWithWeights) {
  EXPECT_EQ(read("[2, 7, 32]", "EinsumDense",
                 R"("equation": "abc,cde->abde", "output_shape": [null, 4, 8], "bias_axes": "de")")
                .lines,
            Lines{"l dense rows=14;in=32;out=32;bias=1"});
  EXPECT_EQ(read("[2, 7, 32]", "EinsumDense", R"("equation": "...x,xy->...y", "output_shape": 5)").out, 7 * 5);
  EXPECT_EQ(read("[2, 7]", "Embedding", R"("input_dim": 100, "output_dim": 16)").lines,
            Lines{"l embedding vocabulary=100;width=16;tokens=14"});
}

TEST(KerasLayers, RecurrentLayersAreOneOperation) {
  const ModelSummary lstm = read("[2, 10, 8]", "LSTM", R"("units": 4, "return_sequences": true)");
  EXPECT_EQ(lstm.lines, Lines{"l recurrent form=lstm;batch=2;steps=10;in=8;hidden=4;layers=1;directions=1;bias=1"});
  EXPECT_EQ(lstm.weights, 8 * 16 + 4 * 16 + 16);
  EXPECT_EQ(lstm.out, 10 * 4);
  EXPECT_EQ(read("[2, 10, 8]", "GRU", R"("units": 4)").weights, 8 * 12 + 4 * 12 + 24);
  EXPECT_EQ(read("[2, 10, 8]", "GRU", R"("units": 4, "reset_after": false)").weights, 8 * 12 + 4 * 12 + 12);
  EXPECT_EQ(read("[2, 10, 8]", "SimpleRNN", R"("units": 4)").out, 4);
  const ModelSummary bidirectional_lstm =
      read("[2, 10, 8]", "Bidirectional", R"("merge_mode": "concat", "layer": {"class_name": "LSTM",
      "config": {"name": "lstm", "units": 4}})");
  EXPECT_EQ(bidirectional_lstm.weights, 2 * lstm.weights);
  EXPECT_EQ(bidirectional_lstm.out, 8);
  EXPECT_EQ(bidirectional_lstm.lines,
            Lines{"l recurrent form=lstm;batch=2;steps=10;in=8;hidden=4;layers=1;directions=2;bias=1"});
}

TEST(KerasLayers, CellsAndLayersWithoutALibraryKernelRunStepByStep) {
  const ModelSummary lstm_summary = read("[2, 10, 8]", "LSTM", R"("units": 4, "recurrent_activation": "hard_sigmoid")");
  EXPECT_EQ(lstm_summary.lines, (Lines{"l dense rows=2;in=8;out=16;bias=1 x10", "l dense rows=2;in=4;out=16;bias=0 x10",
                                       "l activation form=lstm_cell;batch=2;rows=4;width=4 x10"}));
  const ModelSummary cells = read("[2, 10, 8]", "RNN", R"("cell": {"class_name": "GRUCell", "config": {"units": 4}})");
  EXPECT_EQ(cells.lines.size(), 3U);
  EXPECT_EQ(cells.lines.back(), "l activation form=gru_cell;batch=2;rows=3;width=4 x10");
}

TEST(KerasLayers, TimeDistributedRunsOnEveryStep) {
  const ModelSummary time_distributed_dense = read(
      "[2, 10, 8]", "TimeDistributed", R"("layer": {"class_name": "Dense", "config": {"name": "dense", "units": 3}})");
  EXPECT_EQ(time_distributed_dense.lines, Lines{"l.dense dense rows=20;in=8;out=3;bias=1"});
  EXPECT_EQ(time_distributed_dense.out, 30);
}

// A tensor in the format of Keras 3, for the arguments of a call.
std::string tensor(std::string_view layer) {
  return fmt::format(R"({{"class_name": "__keras_tensor__", "config": {{"keras_history": ["{}", 0, 0]}}}})", layer);
}

Result<Graph> read_two_input_model(std::string_view shapes, std::string_view layer, std::string_view args,
                                   std::string_view kwargs = "{}") {
  return read_keras(fmt::format(R"({{"class_name": "Functional", "config": {{"name": "m", "layers": [
      {{"class_name": "InputLayer", "config": {{"name": "a", "batch_shape": {0}}}, "name": "a", "inbound_nodes": []}},
      {{"class_name": "InputLayer", "config": {{"name": "b", "batch_shape": {0}}}, "name": "b", "inbound_nodes": []}},
      {1}, "name": "l", "inbound_nodes": [{{"args": {2}, "kwargs": {3}}}]}}],
      "input_layers": [["a", 0, 0], ["b", 0, 0]], "output_layers": ["l", 0, 0]}}}})",
                                shapes, layer.substr(0, layer.size() - 1), args, kwargs),
                    {});
}

Lines lines(const Result<Graph>& graph) {
  EXPECT_TRUE(graph) << graph.error().message;
  return graph ? format_operations(*graph) : Lines{};
}

TEST(KerasLayers, TranslatesAttentionWithItsProjections) {
  const Result<Graph> graph = read_two_input_model(
      "[2, 20, 32]", keras_layer("MultiHeadAttention", "l", R"("num_heads": 4, "key_dim": 8)"), "[]",
      fmt::format(R"({{"query": {}, "value": {}, "use_causal_mask": true}})", tensor("a"), tensor("b")));
  EXPECT_EQ(lines(graph), (Lines{"l dense rows=40;in=32;out=32;bias=1", "l dense rows=40;in=32;out=32;bias=1",
                                 "l dense rows=40;in=32;out=32;bias=1",
                                 "l attention batch=2;heads=4;queries=20;keys=20;width=8;causal=1",
                                 "l dense rows=40;in=32;out=32;bias=1"}));
  EXPECT_EQ(graph->weight_element_count, 4 * (32 * 32 + 32));
  EXPECT_EQ(graph->operations[2].gradient, NeededGradients::weights);
  EXPECT_EQ(graph->operations[4].gradient, NeededGradients::weights) << "the value does not come behind the query";
  EXPECT_EQ(graph->operations[5].gradient, NeededGradients::all);
}

TEST(KerasLayers, TranslatesMergeLayers) {
  const std::string tensor_pair_json = fmt::format("[[{}, {}]]", tensor("a"), tensor("b"));
  EXPECT_EQ(lines(read_two_input_model("[2, 4, 6]", keras_layer("Add", "l"), tensor_pair_json)),
            Lines{"l add form=same;batch=2;rows=4;width=6"});
  EXPECT_EQ(lines(read_two_input_model("[2, 4, 6]", keras_layer("Concatenate", "l", "\"axis\": -1"), tensor_pair_json)),
            Lines{"l concatenate batch=2;rows=4;width=6;parts=2"});
  EXPECT_EQ(lines(read_two_input_model("[2, 4, 6]", keras_layer("Dot", "l", "\"axes\": [2, 2]"), tensor_pair_json)),
            Lines{"l bmm batch=2;m=4;k=6;n=4"});
}

std::string function(std::string_view class_name, std::string_view config = "") {
  return R"({"module": "keras.src.ops.numpy", )" + keras_layer(class_name, "l", config).substr(1);
}

TEST(KerasLayers, TranslatesFunctionsOfKerasOps) {
  const std::string single_tensor_json = "[" + tensor("a") + "]";
  const std::string number = "[" + tensor("a") + ", 2.0]";
  const std::string slices = "[" + tensor("a") + R"(, [{"class_name": "__slice__", "config": {"start": null}},
      {"class_name": "__slice__", "config": {"start": 1, "stop": -1}}, 0]])";
  EXPECT_EQ(lines(read_two_input_model("[2, 4, 6]", function("Mean", "\"axis\": 1"), single_tensor_json)),
            Lines{"l reduce form=mean;batch=2;rows=4;width=6;over=1"});
  EXPECT_EQ(lines(read_two_input_model("[2, 4, 6]", function("TrueDivide"), number)),
            Lines{"l multiply form=scalar;batch=2;rows=4;width=6"});
  EXPECT_EQ(lines(read_two_input_model("[2, 4, 6]", function("GetItem"), slices)),
            Lines{"l view batch=2;rows=1;width=2"});
  EXPECT_EQ(lines(read_two_input_model("[2, 4, 6]", function("Transpose", "\"axes\": [0, 2, 1]"), single_tensor_json)),
            Lines{"l reshape form=transpose;batch=2;rows=6;width=4"});
  EXPECT_EQ(lines(read_two_input_model("[2, 4, 6]", function("Einsum", R"("subscripts": "abc,adc->abd")"),
                                       "[" + tensor("a") + "," + tensor("b") + "]")),
            Lines{"l bmm batch=2;m=4;k=6;n=4"});
}

TEST(KerasLayers, TranslatesFunctionsOfTensorFlow) {
  const auto lambda = [](std::string_view function, std::string_view inbound) {
    return lines(read_keras(fmt::format(R"({{"class_name": "Functional", "config": {{"name": "m", "layers": [
        {{"class_name": "InputLayer", "config": {{"name": "x", "batch_input_shape": [2, 4, 6]}}, "name": "x"}},
        {{"class_name": "TFOpLambda", "config": {{"name": "l", "function": "{}"}}, "name": "l", "inbound_nodes": {}}}],
        "input_layers": [["x", 0, 0]], "output_layers": [["l", 0, 0]]}}}})",
                                        function, inbound),
                            {}));
  };
  EXPECT_EQ(lambda("math.reduce_mean", R"([["x", 0, 0, {"axis": [1], "keepdims": true}]])"),
            Lines{"l reduce form=mean;batch=2;rows=4;width=6;over=1"});
  EXPECT_EQ(lambda("__operators__.add", R"([["x", 0, 0, {"y": [0, 1, 2, 3, 4, 5], "name": null}]])"),
            Lines{"l add form=last;batch=1;rows=8;width=6"});
  EXPECT_EQ(lambda("math.subtract", R"([["_CONSTANT_VALUE", -1, 1.0, {"y": ["x", 0, 0]}]])"),
            Lines{"l add form=scalar;batch=2;rows=4;width=6"});
  EXPECT_EQ(lambda("linalg.matmul", R"([["x", 0, 0, {"b": ["x", 0, 0], "transpose_b": true}]])"),
            Lines{"l bmm batch=2;m=4;k=6;n=4;transposed=1"});
}

}  // namespace
}  // namespace joulemap::predict
