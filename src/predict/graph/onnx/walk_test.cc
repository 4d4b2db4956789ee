// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "predict/graph/onnx/onnx_graph.h"
#include "support/onnx_model.h"

namespace joulemap::predict {
namespace {

using testing::integer;
using testing::integers;
using testing::onnx_node;
using testing::OnnxModel;
using testing::texts;

Graph expect_graph(const OnnxModel& model, const GraphOptions& options = {}) {
  Result<Graph> graph = read_onnx(model.bytes(), options);
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().message);
  return graph ? *std::move(graph) : Graph{};
}

std::string format_last_operation(const Graph& graph) {
  if (graph.operations.empty()) return "nothing";
  const Operation& last_operation = graph.operations.back();
  return std::string(name_of(last_operation.kind)) + " " + parameters_text(last_operation);
}

// Dynamic exports compute the target of a reshape from the sizes of its input.
TEST(OnnxWalk, EvaluatesShapesThatAreComputedFromSizes) {
  OnnxModel model;
  model.input("x", {-1, -2, 64})
      .list("zero", {0})
      .list("one", {1})
      .list("heads", {8, -1})
      .node("Shape", {"x"}, {"sizes"})
      .node("Gather", {"sizes", "zero"}, {"batch"})
      .node("Slice", {"sizes", "one", "two"}, {"tokens"})
      .list("two", {2})
      .node("Concat", {"batch", "tokens", "heads"}, {"target"}, {integer("axis", 0)})
      .node("Reshape", {"x", "target"}, {"split"})
      .node("Transpose", {"split"}, {"turned"}, {integers("perm", {0, 2, 1, 3})})
      .node("Softmax", {"turned"}, {"y"})
      .output("y");
  const Graph graph = expect_graph(model, {.inputs = {{"x", {3, 5, 64}}}});
  EXPECT_TRUE(graph.unknown_operations.empty());
  EXPECT_EQ(format_last_operation(graph), "activation form=softmax;batch=3;rows=40;width=8");
  ASSERT_EQ(graph.operations.size(), 3U);
  EXPECT_EQ(graph.operations[0].kind, Kind::view);
  EXPECT_EQ(graph.operations[1].kind, Kind::reshape);  // softmax needs contiguous data
}

TEST(OnnxWalk, AdaptsAStoredBatchInAReshapeToTheGivenBatch) {
  const auto reshape_to_target = [](const testing::Int64List& sizes, const testing::Int64List& target) {
    OnnxModel model;
    model.input("x", sizes).list("target", target).node("Reshape", {"x", "target"}, {"y"}).node("Relu", {"y"}, {"z"});
    return format_last_operation(expect_graph(model.output("z"), {.batch = 6}));
  };
  EXPECT_EQ(reshape_to_target({1, 8, 2, 2}, {1, -1}), "activation form=relu;batch=6;rows=1;width=32");
  EXPECT_EQ(reshape_to_target({2, 8, 2, 2}, {2, 32}), "activation form=relu;batch=6;rows=1;width=32");
  EXPECT_EQ(reshape_to_target({1, 8, 4}, {1, 2, 4, 4}), "activation form=relu;batch=6;rows=2;width=16");
  EXPECT_EQ(reshape_to_target({1, 8, 4}, {2, 4, 4}), "activation form=relu;batch=12;rows=4;width=4");
  EXPECT_EQ(reshape_to_target({1, 8, 4}, {-1, 4}), "activation form=relu;batch=48;rows=1;width=4");
}

TEST(OnnxWalk, RepeatsAStoredClassTokenForTheBatch) {
  OnnxModel model;
  model.input("x", {1, 9, 4}).weight("token", {1, 1, 4});
  model.node("Concat", {"token", "x"}, {"y"}, {integer("axis", 1)}).node("Relu", {"y"}, {"z"}).output("z");
  EXPECT_EQ(format_last_operation(expect_graph(model, {.batch = 6})), "activation form=relu;batch=6;rows=10;width=4");
}

TEST(OnnxWalk, FunctionsAreInlinedWithTheAttributesOfTheirCaller) {
  formats::ProtobufWriter axis;
  axis.add(1, "axis").add(21, "where");
  formats::ProtobufWriter function;
  function.add(1, "Pair").add(10, "local").add(4, "a").add(5, "c");
  function.add(7, onnx_node("Concat", {"a", "a"}, {"b"}, {axis})).add(7, onnx_node("Relu", {"b"}, {"c"}));
  OnnxModel model;
  model.input("x", {2, 3}).node("Pair", {"x"}, {"y"}, {integer("where", 1)}, "pair", "local").output("y");
  const Graph graph = expect_graph(model.function(function));
  EXPECT_TRUE(graph.unknown_operations.empty());
  EXPECT_EQ(format_last_operation(graph), "activation form=relu;batch=2;rows=1;width=6");
  EXPECT_EQ(graph.operations.back().layer, "pair");
}

TEST(OnnxWalk, AFunctionThatCallsItselfIsRefused) {
  formats::ProtobufWriter function;
  function.add(1, "Again").add(10, "local").add(4, "a").add(5, "b");
  function.add(7, onnx_node("Again", {"a"}, {"b"}, {}, "", "local"));
  OnnxModel model;
  model.input("x", {2, 3}).node("Again", {"x"}, {"y"}, {}, "", "local").output("y").function(function);
  EXPECT_FALSE(read_onnx(model.bytes(), {}));
}

OnnxModel model_with_branches(const OnnxModel& taken_branch, const OnnxModel& other_branch) {
  OnnxModel model;
  model.input("x", {2, 3}).list("three", {3}).list("one", {1}).node("Shape", {"x"}, {"sizes"});
  model.node("Gather", {"sizes", "one"}, {"width"}).node("Equal", {"width", "three"}, {"is_three"});
  model.node(
      "If", {"is_three"}, {"y"},
      {testing::subgraph("then_branch", taken_branch.graph()), testing::subgraph("else_branch", other_branch.graph())});
  return model.output("y");
}

TEST(OnnxWalk, EvaluatesABranchWithAKnownCondition) {
  OnnxModel relu;
  OnnxModel tanh;
  relu.node("Relu", {"x"}, {"r"}).output("r");
  tanh.node("Tanh", {"x"}, {"t"}).output("t");
  const Graph graph = expect_graph(model_with_branches(relu, tanh));
  EXPECT_EQ(format_last_operation(graph), "activation form=relu;batch=2;rows=1;width=3");
}

TEST(OnnxWalk, UnrollsALoopOfAKnownCountAndListsOthersAsUnknown) {
  OnnxModel body;
  body.input("turn", {}, testing::kOnnxInt64).input("go", {}, 9).input("state", {2, 3}).weight("w", {3, 3});
  body.node("MatMul", {"state", "w"}, {"next"}).output("go").output("next");
  const auto loop = [&](bool has_known_count) {
    OnnxModel model;
    model.input("x", {2, 3}).list("seven", {7}).input("n", {1}, testing::kOnnxInt64);
    model.node("Loop", {has_known_count ? "seven" : "n", "", "x"}, {"y"}, {testing::subgraph("body", body.graph())})
        .output("y");
    return expect_graph(model);
  };
  const Graph unrolled_graph = loop(true);
  ASSERT_EQ(unrolled_graph.operations.size(), 1U);
  EXPECT_EQ(unrolled_graph.operations[0].count, 7);
  EXPECT_EQ(format_last_operation(unrolled_graph), "dense rows=2;in=3;out=3;bias=0");
  const Graph unknown = loop(false);
  ASSERT_EQ(unknown.unknown_operations.size(), 1U);
  EXPECT_EQ(unknown.unknown_operations[0].source, "Loop");
}

TEST(OnnxWalk, RecurrentLayersAreOneOperation) {
  OnnxModel model;
  model.input("x", {12, 4, 10}).weight("w", {1, 80, 10}).weight("r", {1, 80, 20}).weight("b", {1, 160});
  model.node("LSTM", {"x", "w", "r", "b"}, {"y"}, {integer("hidden_size", 20)}).output("y");
  const Graph graph = expect_graph(model);
  ASSERT_EQ(graph.operations.size(), 1U);
  EXPECT_EQ(format_last_operation(graph),
            "recurrent form=lstm;batch=4;steps=12;in=10;hidden=20;layers=1;directions=1;bias=1");
}

TEST(OnnxWalk, RecurrentLayersWithoutALibraryKernelAreProductsPerStep) {
  OnnxModel model;
  model.input("x", {12, 4, 10}).weight("w", {1, 20, 10}).weight("r", {1, 20, 20});
  model.node("RNN", {"x", "w", "r"}, {"y"}, {texts("activations", {"Softsign"}), integer("hidden_size", 20)});
  const Graph graph = expect_graph(model.output("y"));
  ASSERT_EQ(graph.operations.size(), 3U);
  EXPECT_EQ(parameters_text(graph.operations[0]), "rows=48;in=10;out=20;bias=0");
  EXPECT_EQ(parameters_text(graph.operations[1]), "rows=4;in=20;out=20;bias=0");
  EXPECT_EQ(graph.operations[1].count, 12);
}

// As PyTorch exports nn.GRU(6, 8, num_layers=2, bidirectional=True).
TEST(OnnxWalk, StackedRecurrentLayersAreOneCallWithoutCopies) {
  OnnxModel model;
  model.input("x", {12, 4, 6}).weight("w0", {2, 24, 6}).weight("r0", {2, 24, 8});
  model.weight("w1", {2, 24, 16}).weight("r1", {2, 24, 8}).list("side", {0, 0, -1});
  for (const auto& [input, layer] : {std::pair<std::string, std::string>{"x", "0"}, {"s0", "1"}}) {
    model.node("GRU", {input, "w" + layer, "r" + layer}, {"y" + layer}, {integer("hidden_size", 8)});
    model.node("Transpose", {"y" + layer}, {"t" + layer}, {integers("perm", {0, 2, 1, 3})});
    model.node("Reshape", {"t" + layer, "side"}, {"s" + layer});
  }
  const Graph graph = expect_graph(model.output("s1"));
  EXPECT_TRUE(graph.unknown_operations.empty());
  std::vector<std::string> lines;
  for (const Operation& operation : graph.operations) {
    if (operation.kind != Kind::view) lines.push_back(parameters_text(operation));
  }
  EXPECT_EQ(lines, std::vector<std::string>{"form=gru;batch=4;steps=12;in=6;hidden=8;layers=2;directions=2;bias=0"});
}

TEST(OnnxWalk, ParallelRecurrentLayersStayTwoCalls) {
  OnnxModel model;
  model.input("x", {12, 4, 8}).weight("w", {1, 32, 8}).weight("r", {1, 32, 8});
  model.node("LSTM", {"x", "w", "r"}, {"a"}, {integer("hidden_size", 8)});
  model.node("LSTM", {"x", "w", "r"}, {"b"}, {integer("hidden_size", 8)});
  model.node("Add", {"a", "b"}, {"y"});
  const Graph graph = expect_graph(model.output("y"));
  ASSERT_EQ(graph.operations.size(), 3U);
  EXPECT_EQ(graph.operations[0].parameters.get("layers", 0), 1);
  EXPECT_EQ(graph.operations[1].kind, Kind::recurrent);
}

TEST(OnnxWalk, UnevenConvolutionsHaveTheirOutputSize) {
  OnnxModel model;
  model.input("x", {1, 3, 9, 9}).weight("w", {4, 3, 3, 1});
  model.node("Conv", {"x", "w"}, {"y"}, {integers("strides", {2, 1}), integers("pads", {0, 0, 1, 0})}).output("y");
  EXPECT_EQ(format_last_operation(expect_graph(model)),
            "convolution batch=1;channels=3;out=4;height=9;width=9;kernel=3;stride=2;padding=0;dilation=1;"
            "kernel_width=1;stride_width=1;groups=1;bias=0");
  OnnxModel line;
  line.input("x", {1, 3, 9}).weight("w", {4, 3, 2});
  line.node("Conv", {"x", "w"}, {"y"}, {testing::text_attribute("auto_pad", "SAME_UPPER")}).output("y");
  EXPECT_EQ(format_last_operation(expect_graph(line)),
            "convolution batch=1;channels=3;out=4;height=1;width=9;kernel=1;stride=1;padding=0;dilation=1;"
            "kernel_width=2;out_height=1;out_width=9;groups=1;bias=0");
}

TEST(OnnxWalk, EinsumEquationsAreProducts) {
  OnnxModel model;
  model.input("q", {2, 5, 8, 16}).input("k", {2, 7, 8, 16});
  model.node("Einsum", {"q", "k"}, {"y"}, {testing::text_attribute("equation", "bqhd, bkhd -> bhqk")}).output("y");
  EXPECT_EQ(format_last_operation(expect_graph(model)), "bmm batch=16;m=5;k=16;n=7");
}

}  // namespace
}  // namespace joulemap::predict
