// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/onnx/onnx_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "support/onnx_model.h"

namespace joulemap::predict {
namespace {

using testing::integer;
using testing::integers;
using testing::OnnxModel;

Graph expect_graph(const std::string& bytes, const GraphOptions& options = {}) {
  Result<Graph> graph = read_onnx(bytes, options);
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().message);
  return graph ? *std::move(graph) : Graph{};
}

Error expect_read_error(const std::string& bytes, const GraphOptions& options = {}) {
  const Result<Graph> graph = read_onnx(bytes, options);
  EXPECT_FALSE(graph);
  return graph ? Error{} : graph.error();
}

std::string read_resnet18_bytes() {
  std::ifstream file(JOULEMAP_ONNX_MODELS "/resnet18.onnx", std::ios::binary);
  EXPECT_TRUE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

const Operation* find_layer(const Graph& graph, std::string_view layer, Kind kind) {
  const auto matching_operation =
      std::find_if(graph.operations.begin(), graph.operations.end(),
                   [&](const Operation& operation) { return operation.layer == layer && operation.kind == kind; });
  return matching_operation == graph.operations.end() ? nullptr : &*matching_operation;
}

std::int64_t output_size(const OperationParameters& p, std::string_view size) {
  return (p.get(size, 1) + 2 * p.get("padding", 0) - p.get("kernel", 1)) / p.get("stride", 1) + 1;
}

// FLOPs: a multiply and an add count as 2, as in PyTorch's FLOP counter.
double flops_of(const Operation& operation) {
  const OperationParameters& p = operation.parameters;
  const auto get = [&](std::string_view name) { return static_cast<double>(p.get(name, 1)); };
  if (operation.kind == Kind::dense) return 2 * get("rows") * get("in") * get("out");
  if (operation.kind != Kind::convolution) return 0;
  const auto pixels = static_cast<double>(output_size(p, "height") * output_size(p, "width"));
  return 2 * get("batch") * pixels * get("kernel") * get("kernel") * get("channels") * get("out") / get("groups");
}

double flops_of(const Graph& graph) {
  double sum = 0;
  for (const Operation& operation : graph.operations) sum += flops_of(operation);
  return sum;
}

TEST(OnnxGraph, AResNetHasTheOperationsAndModuleNamesOfPyTorch) {
  const Graph graph = expect_graph(read_resnet18_bytes());
  EXPECT_TRUE(graph.unknown_operations.empty());
  EXPECT_TRUE(graph.notes.empty());
  EXPECT_EQ(graph.format, "onnx");
  EXPECT_EQ(graph.operations.size(), 69U);
  EXPECT_EQ(graph.weight_tensor_count, 62);
  EXPECT_EQ(graph.weight_element_count, 11'689'512);
  // torch.utils.flop_counter counts 3,628,146,688.
  EXPECT_NEAR(flops_of(graph) / 3'628'146'688.0, 1, 1e-6);

  const Operation* const first_convolution = find_layer(graph, "conv1", Kind::convolution);
  ASSERT_NE(first_convolution, nullptr);
  EXPECT_EQ(first_convolution->source, "Conv");
  EXPECT_EQ(first_convolution->gradient, NeededGradients::weights);
  EXPECT_EQ(parameters_text(*first_convolution),
            "batch=1;channels=3;out=64;height=224;width=224;kernel=7;stride=2;padding=3;dilation=1;groups=1;bias=0");
  const Operation* const norm = find_layer(graph, "layer1.0.bn1", Kind::normalization);
  ASSERT_NE(norm, nullptr);
  EXPECT_EQ(norm->form, "batch-inference");
  EXPECT_EQ(norm->gradient, NeededGradients::all);
  EXPECT_NE(find_layer(graph, "layer4.1.conv2", Kind::convolution), nullptr);
  const Operation* const last_dense_operation = find_layer(graph, "fc", Kind::dense);
  ASSERT_NE(last_dense_operation, nullptr);
  EXPECT_EQ(parameters_text(*last_dense_operation), "rows=1;in=512;out=1000;bias=1");
}

TEST(OnnxGraph, UsesAGivenBatchWithANote) {
  const Graph graph = expect_graph(read_resnet18_bytes(), {.batch = 8});
  EXPECT_EQ(graph.notes, std::vector<std::string>{"batch 8 instead of the file's 1"});
  EXPECT_NEAR(flops_of(graph) / 8 / 3'628'146'688.0, 1, 1e-6);
  EXPECT_EQ(find_layer(graph, "fc", Kind::dense)->parameters.get("rows", 0), 8);
}

TEST(OnnxGraph, AcceptsInputSizesByNameOrInOrder) {
  for (const std::string name : {"input", ""}) {
    const Graph graph = expect_graph(read_resnet18_bytes(), {.inputs = {{name, {2, 3, 320, 320}}}});
    EXPECT_TRUE(graph.unknown_operations.empty());
    EXPECT_EQ(find_layer(graph, "conv1", Kind::convolution)->parameters.get("height", 0), 320);
    EXPECT_EQ(find_layer(graph, "fc", Kind::dense)->parameters.get("rows", 0), 2);
  }
  EXPECT_EQ(expect_read_error(read_resnet18_bytes(), {.inputs = {{"images", {1, 3, 9, 9}}}}).remedy,
            "its inputs are input");
  EXPECT_NE(
      expect_read_error(read_resnet18_bytes(), {.inputs = {{"input", {3, 224, 224}}}}).message.find("4 dimensions"),
      std::string::npos);
}

TEST(OnnxGraph, RefusesAnInvalidBatchAndOverflowingSizes) {
  EXPECT_EQ(expect_read_error(read_resnet18_bytes(), {.batch = 0}).code, ErrorCode::usage);
  EXPECT_EQ(expect_read_error(read_resnet18_bytes(), {.batch = -3}).code, ErrorCode::usage);
  EXPECT_NE(expect_read_error(read_resnet18_bytes(), {.batch = kMaxElements}).message.find("larger than any memory"),
            std::string::npos);
  EXPECT_NE(expect_read_error(read_resnet18_bytes(), {.batch = 200'000'000}).message.find("larger than any memory"),
            std::string::npos);
}

TEST(OnnxGraph, ReportsAFileCutAnywhereAsTruncated) {
  const std::string model_bytes = read_resnet18_bytes();
  for (const std::size_t size : {std::size_t{100}, model_bytes.size() / 2, model_bytes.size() - 1}) {
    const Error error = expect_read_error(model_bytes.substr(0, size));
    EXPECT_EQ(error.code, ErrorCode::malformed);
    EXPECT_FALSE(error.remedy.empty());
  }
  EXPECT_NE(expect_read_error(model_bytes.substr(0, model_bytes.size() / 2)).message.find("truncated"),
            std::string::npos);
}

TEST(OnnxGraph, ReportsAFileThatIsNotOnnx) {
  for (const std::string& bytes : {std::string(), std::string("{\"json\": 1}"), std::string(300, '\0')}) {
    EXPECT_NE(expect_read_error(bytes).message.find("not an ONNX file"), std::string::npos);
  }
}

std::string dense_model(std::int64_t opset, const testing::Int64List& sizes) {
  return OnnxModel(opset)
      .input("x", sizes)
      .weight("fc.weight", {16, 4})
      .node("MatMul", {"x", "fc.weight"}, {"y"}, {}, "/fc/MatMul")
      .output("y")
      .bytes();
}

TEST(OnnxGraph, RefusesAnOldOpsetWithARemedyAndNotesANewOne) {
  const Error error = expect_read_error(dense_model(12, {1, 16}));
  EXPECT_NE(error.message.find("opset 12"), std::string::npos);
  EXPECT_NE(error.remedy.find("convert_version"), std::string::npos);
  EXPECT_EQ(expect_graph(dense_model(99, {1, 16})).notes.size(), 1U);
}

TEST(OnnxGraph, AnOpenBatchIsOneWithANoteAndOtherOpenSizesAreRequired) {
  const Graph graph = expect_graph(dense_model(17, {-1, 16}));
  EXPECT_EQ(graph.notes, std::vector<std::string>{"batch 1: the file does not fix that of 'x'"});
  EXPECT_TRUE(expect_graph(dense_model(17, {-1, 16}), {.batch = 4}).notes.empty());

  const Error error = expect_read_error(dense_model(17, {-1, -2, 16}));
  EXPECT_EQ(error.message, "the input 'x' is batchxtokensx16: tokens has no value");
  EXPECT_EQ(error.remedy, "set its sizes: --input x=1x128x16");
  const Graph graph_with_sizes = expect_graph(dense_model(17, {-1, -2, 16}), {.inputs = {{"x", {2, 5, 16}}}});
  ASSERT_EQ(graph_with_sizes.operations.size(), 1U);
  EXPECT_EQ(parameters_text(graph_with_sizes.operations[0]), "rows=10;in=16;out=4;bias=0");
}

TEST(OnnxGraph, ListsAnOperationOfAnotherDomainAndLeavesItsSuccessorsUnbounded) {
  const std::string bytes = OnnxModel()
                                .input("x", {1, 16})
                                .node("Frobnicate", {"x"}, {"y"}, {}, "/head/Frobnicate", "com.acme")
                                .node("Relu", {"y"}, {"z"}, {}, "/head/Relu")
                                .output("z")
                                .bytes();
  const Graph graph = expect_graph(bytes);
  ASSERT_EQ(graph.unknown_operations.size(), 2U);
  EXPECT_EQ(graph.unknown_operations[0].source, "com.acme.Frobnicate");
  EXPECT_EQ(graph.unknown_operations[0].reason, "an unsupported operation of the domain 'com.acme'");
  EXPECT_EQ(graph.unknown_operations[0].layer, "head");
  EXPECT_FALSE(graph.unknown_operations[0].has_lower_bound);
  EXPECT_EQ(graph.operations.size(), 2U);
  EXPECT_FALSE(has_lower_bound(graph.operations[1])) << "it is not in the total";
}

TEST(OnnxGraph, QuantisedArithmeticIsUnknownButBounded) {
  const std::string bytes = OnnxModel()
                                .input("x", {4, 16}, 3)
                                .weight("w", {16, 8}, 3)
                                .node("MatMulInteger", {"x", "w"}, {"y"})
                                .output("y")
                                .bytes();
  const Graph graph = expect_graph(bytes);
  ASSERT_EQ(graph.unknown_operations.size(), 1U);
  EXPECT_TRUE(graph.unknown_operations[0].has_lower_bound);
  EXPECT_EQ(parameters_text(graph.operations[0]), "batch=1;rows=1;width=192;in=192;out=32");
}

TEST(OnnxGraph, UsesTheRequestedTypeUnlessTheFileIsHalfPrecision) {
  EXPECT_EQ(expect_graph(dense_model(17, {1, 16}), {.dtype = Dtype::bf16}).operations[0].dtype, Dtype::bf16);
  const std::string half_precision_model = OnnxModel()
                                               .input("x", {1, 16}, testing::kOnnxFloat16)
                                               .weight("w", {16, 4}, testing::kOnnxFloat16)
                                               .node("MatMul", {"x", "w"}, {"y"})
                                               .node("Cast", {"y"}, {"z"}, {integer("to", testing::kOnnxFloat)})
                                               .output("z")
                                               .bytes();
  const Graph graph = expect_graph(half_precision_model);
  EXPECT_EQ(graph.operations[0].dtype, Dtype::fp16);
  EXPECT_EQ(graph.operations[1].kind, Kind::cast);
  EXPECT_EQ(graph.operations[1].form, "fp32");
  EXPECT_EQ(graph.notes.size(), 1U);
}

TEST(OnnxGraph, OperationsBeforeTheFirstWeightHaveNoGradient) {
  const std::string bytes = OnnxModel()
                                .input("x", {1, 16})
                                .weight("w", {16, 4})
                                .node("Relu", {"x"}, {"a"})
                                .node("MatMul", {"a", "w"}, {"b"})
                                .node("Relu", {"b"}, {"y"})
                                .output("y")
                                .bytes();
  const Graph graph = expect_graph(bytes);
  ASSERT_EQ(graph.operations.size(), 3U);
  EXPECT_EQ(graph.operations[0].gradient, NeededGradients::none);
  EXPECT_EQ(graph.operations[1].gradient, NeededGradients::weights);
  EXPECT_EQ(graph.operations[2].gradient, NeededGradients::all);
}

}  // namespace
}  // namespace joulemap::predict
