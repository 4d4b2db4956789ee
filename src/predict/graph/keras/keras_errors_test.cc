// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/keras_texts.h"

namespace joulemap::predict {
namespace {

Error expect_keras_error(const std::string& text, const GraphOptions& options = {}) {
  const Result<Graph> graph = read_keras(text, options);
  EXPECT_FALSE(graph) << text.substr(0, 200);
  return graph ? Error{} : graph.error();
}

bool message_contains(const Error& error, std::string_view part) {
  return error.message.find(part) != std::string::npos;
}

std::string dense(std::string_view config) {
  return keras_sequential("[null, 8]", {keras_layer("Dense", "dense", config)});
}

TEST(KerasErrors, InvalidJsonIsAnErrorWithARemedy) {
  for (const std::string text : {"", "PK\x03\x04", "{\"class_name\": \"Sequen"}) {
    EXPECT_NE(expect_keras_error(text).remedy.find("model.to_json()"), std::string::npos);
  }
}

TEST(KerasErrors, ReportsJsonThatIsNoModel) {
  EXPECT_TRUE(message_contains(expect_keras_error("[1, 2]"), "not a Keras model"));
  EXPECT_TRUE(message_contains(expect_keras_error("{}"), "not a Keras model"));
  const Error subclassed = expect_keras_error(R"({"class_name": "MyModel", "config": {}})");
  EXPECT_TRUE(message_contains(subclassed, "MyModel"));
  EXPECT_NE(subclassed.remedy.find("ONNX"), std::string::npos);
  EXPECT_TRUE(message_contains(
      expect_keras_error(R"({"class_name": "Sequential", "config": {"name": "a", "layers": []}})"), "no layers"));
}

TEST(KerasErrors, AMissingOrImpossibleNumberNamesTheLayer) {
  EXPECT_TRUE(
      message_contains(expect_keras_error(dense("\"use_bias\": true")), "layer dense (Dense): its units is missing"));
  EXPECT_TRUE(message_contains(expect_keras_error(dense("\"units\": 0")), "its units is 0"));
  EXPECT_TRUE(message_contains(expect_keras_error(dense("\"units\": -4")), "its units is -4"));
  EXPECT_TRUE(
      message_contains(expect_keras_error(dense("\"units\": \"many\"")), "its units is missing or not an integer"));
}

TEST(KerasErrors, SizesThatOverflowAreRefused) {
  EXPECT_TRUE(message_contains(expect_keras_error(dense("\"units\": 70368744177664")), "weights have more than"));
  EXPECT_TRUE(message_contains(expect_keras_error(dense("\"units\": 9223372036854775807")), "not between"));
  EXPECT_TRUE(
      message_contains(expect_keras_error(dense("\"units\": 3"), {.batch = std::int64_t{1} << 45}), "too large"));
  EXPECT_TRUE(message_contains(expect_keras_error(dense("\"units\": 3"), {.batch = 0}), "a batch of 0"));
  EXPECT_TRUE(message_contains(expect_keras_error(keras_sequential("[1, 0]", {})), "is empty"));
}

TEST(KerasErrors, AKernelLargerThanItsImageIsRefused) {
  const std::string conv = keras_layer("Conv2D", "conv", R"("filters": 4, "kernel_size": [5, 5])");
  const Error error = expect_keras_error(keras_sequential("[1, 4, 4, 3]", {conv}));
  EXPECT_TRUE(message_contains(error, "layer conv (Conv2D): its kernel of 5 does not fit into 4"));
  EXPECT_NE(error.remedy.find("--input"), std::string::npos);
  EXPECT_TRUE(
      message_contains(expect_keras_error(keras_sequential("[1, 4]", {conv})), "takes a tensor of 4 dimensions"));
}

TEST(KerasErrors, RefusesTensorsThatDoNotFit) {
  const std::string reshape = keras_layer("Reshape", "reshape", R"("target_shape": [3, 3])");
  EXPECT_TRUE(message_contains(expect_keras_error(keras_sequential("[1, 8]", {reshape})), "cannot be reshaped"));
  const std::string einsum =
      keras_layer("EinsumDense", "einsum", R"("equation": "abc,cd->abd", "output_shape": [4, 4])");
  EXPECT_TRUE(message_contains(expect_keras_error(keras_sequential("[1, 8]", {einsum})), "is incompatible with 1x8"));
}

std::string make_functional_model(std::string_view add_inputs, std::string_view output) {
  return fmt::format(R"({{"class_name": "Functional", "config": {{"name": "model", "layers": [
      {{"class_name": "InputLayer", "config": {{"name": "x", "batch_shape": [1, 8]}}, "name": "x", "inbound_nodes": []}},
      {{"class_name": "Add", "config": {{"name": "add"}}, "name": "add", "inbound_nodes": {}}}],
      "input_layers": [["x", 0, 0]], "output_layers": {}}}}})",
                     add_inputs, output);
}

TEST(KerasErrors, RefusesIncompatibleTensors) {
  const std::string text = R"({"class_name": "Functional", "config": {"name": "model", "layers": [
      {"class_name": "InputLayer", "config": {"name": "a", "batch_shape": [1, 4, 8]}, "name": "a", "inbound_nodes": []},
      {"class_name": "InputLayer", "config": {"name": "b", "batch_shape": [1, 5, 8]}, "name": "b", "inbound_nodes": []},
      {"class_name": "KIND", "config": {"name": "l"}, "name": "l", "inbound_nodes": [[["a", 0, 0, {}], ["b", 0, 0, {}]]]}],
      "input_layers": [["a", 0, 0], ["b", 0, 0]], "output_layers": [["l", 0, 0]]}})";
  for (const std::string kind : {"Concatenate", "Add", "Multiply"}) {
    std::string model = text;
    const Error error = expect_keras_error(model.replace(model.find("KIND"), 4, kind));
    EXPECT_TRUE(message_contains(error, "layer l (" + kind + ")")) << error.message;
  }
}

TEST(KerasErrors, ReportsACycle) {
  const Error error =
      expect_keras_error(make_functional_model(R"([[["x", 0, 0, {}], ["add", 0, 0, {}]]])", R"([["add", 0, 0]])"));
  EXPECT_TRUE(message_contains(error, "layer add depends on its own output"));
}

TEST(KerasErrors, ReportsATensorWithoutAProducer) {
  EXPECT_TRUE(message_contains(
      expect_keras_error(make_functional_model(R"([[["y", 0, 0, {}]]])", R"([["add", 0, 0]])")), "\"y\""));
  EXPECT_TRUE(message_contains(
      expect_keras_error(make_functional_model(R"([[["add", 7, 0, {}]]])", R"([["add", 0, 0]])")), "call 7"));
  EXPECT_TRUE(message_contains(
      expect_keras_error(make_functional_model(R"([[["x", 0, 3, {}]]])", R"([["add", 0, 0]])")), "output 3"));
  EXPECT_TRUE(message_contains(
      expect_keras_error(make_functional_model(R"([[["x", 0, 0, {}]]])", R"([["add", 0, 4]])")), "output 4"));
  EXPECT_TRUE(
      message_contains(expect_keras_error(make_functional_model(R"([[["x", 0, 0, {}]]])", "[]")), "no outputs"));
  EXPECT_TRUE(message_contains(expect_keras_error(make_functional_model("[[]]", R"([["add", 0, 0]])")),
                               "does not list its input tensors"));
}

TEST(KerasErrors, NestingThatIsTooDeepIsRefused) {
  std::string model = keras_layer("Dense", "dense", R"("units": 2)");
  for (int i = 0; i < 2000; ++i) {
    model = R"({"class_name": "TimeDistributed", "config": {"name": "td", "layer": )" + model + "}}";
  }
  EXPECT_FALSE(read_keras(keras_sequential("[1, 8, 8]", {model}), {}));
}

TEST(KerasErrors, RefusesTooManyNestedCalls) {
  std::string model = keras_layer("Activation", "a", R"("activation": "relu")");
  model = keras_sequential("[1, 8]", {model}, "m");
  // Each nested model calls the one below ten times: 10^9 calls from a few kilobytes.
  for (int i = 0; i < 9; ++i) {
    std::string inbound;
    for (int call = 0; call < 10; ++call) inbound += std::string(call == 0 ? "" : ", ") + R"([["x", 0, 0, {}]])";
    model = fmt::format(R"({{"class_name": "Functional", "config": {{"name": "m", "layers": [
        {{"class_name": "InputLayer", "config": {{"name": "x", "batch_shape": [1, 8]}}, "name": "x"}},
        {}, "name": "m", "inbound_nodes": [{}]}}], "input_layers": [["x", 0, 0]], "output_layers": [["m", 1, 0]]}}}})",
                        model.substr(0, model.size() - 1), inbound);
  }
  EXPECT_TRUE(message_contains(expect_keras_error(model), "more than 200000 calls"));
}

}  // namespace
}  // namespace joulemap::predict
