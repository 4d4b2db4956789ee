// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/onnx/fusions.h"

#include <gtest/gtest.h>

#include "predict/graph/onnx/onnx_graph.h"
#include "support/onnx_model.h"

namespace joulemap::predict {
namespace {

using testing::integer;
using testing::integers;
using testing::OnnxModel;

// "layer kind parameters" of all operations except views.
std::vector<std::string> computing_operations(const OnnxModel& model) {
  const Result<Graph> graph = read_onnx(model.bytes(), {});
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().message);
  std::vector<std::string> lines;
  if (!graph) return lines;
  for (const Operation& operation : graph->operations) {
    if (operation.kind == Kind::view) continue;
    lines.push_back(operation.layer + " " + std::string(name_of(operation.kind)) + " " + parameters_text(operation));
  }
  return lines;
}
using Lines = std::vector<std::string>;

OnnxModel model_with_token_input() {
  OnnxModel model;
  model.input("x", {2, 5, 16}).scalar("half", 0.5F).scalar("one", 1).scalar("two", 2).scalar("three", 3);
  return model;
}

TEST(OnnxFusions, AnErrorFunctionBetweenProductsIsGelu) {
  OnnxModel model = model_with_token_input();
  model.scalar("root", 1.4142F).node("Div", {"x", "root"}, {"a"}, {}, "/act/Div");
  model.node("Erf", {"a"}, {"b"}, {}, "/act/Erf").node("Add", {"b", "one"}, {"c"}, {}, "/act/Add");
  model.node("Mul", {"x", "c"}, {"d"}, {}, "/act/Mul").node("Mul", {"d", "half"}, {"y"}, {}, "/act/Mul_1").output("y");
  EXPECT_EQ(computing_operations(model), Lines{"act activation form=gelu;batch=2;rows=5;width=16"});
}

TEST(OnnxFusions, APolynomialInTanhIsGeluToo) {
  OnnxModel model = model_with_token_input();
  model.scalar("small", 0.044715F).scalar("scale", 0.79788F).node("Mul", {"x", "half"}, {"h"}, {}, "/act/Mul");
  model.node("Pow", {"x", "three"}, {"a"}).node("Mul", {"a", "small"}, {"b"}).node("Add", {"x", "b"}, {"c"});
  model.node("Mul", {"c", "scale"}, {"d"}).node("Tanh", {"d"}, {"e"}, {}, "/act/Tanh").node("Add", {"e", "one"}, {"f"});
  model.node("Mul", {"h", "f"}, {"y"}).output("y");
  EXPECT_EQ(computing_operations(model), Lines{"act activation form=gelu;batch=2;rows=5;width=16"});
}

TEST(OnnxFusions, GatesBySigmoidAndHardSigmoidAreOneActivation) {
  OnnxModel silu = model_with_token_input();
  silu.node("Sigmoid", {"x"}, {"s"}, {}, "/act/Sigmoid").node("Mul", {"x", "s"}, {"y"}).output("y");
  EXPECT_EQ(computing_operations(silu), Lines{"act activation form=silu;batch=2;rows=5;width=16"});
  OnnxModel hard_swish_model = model_with_token_input();
  hard_swish_model.node("HardSigmoid", {"x"}, {"s"}, {}, "/act/HardSigmoid").node("Mul", {"s", "x"}, {"y"}).output("y");
  EXPECT_EQ(computing_operations(hard_swish_model), Lines{"act activation form=hardswish;batch=2;rows=5;width=16"});
}

TEST(OnnxFusions, DoesNotFuseTensorsWithOtherConsumers) {
  OnnxModel model = model_with_token_input();
  model.node("Sigmoid", {"x"}, {"s"}, {}, "/act/Sigmoid").node("Mul", {"x", "s"}, {"y"}, {}, "/act/Mul");
  model.node("Add", {"s", "y"}, {"z"}, {}, "/act/Add").output("z");
  EXPECT_EQ(computing_operations(model).size(), 3U);
}

TEST(OnnxFusions, MeansAndRootsAreALayerNorm) {
  OnnxModel model = model_with_token_input();
  const auto last_axis_attribute = std::vector{integers("axes", {-1})};
  model.weight("ln.weight", {16})
      .weight("ln.bias", {16})
      .node("ReduceMean", {"x"}, {"m"}, last_axis_attribute, "/ln/ReduceMean");
  model.node("Sub", {"x", "m"}, {"d"})
      .node("Pow", {"d", "two"}, {"p"})
      .node("ReduceMean", {"p"}, {"v"}, last_axis_attribute);
  model.scalar("epsilon", 1e-5F).node("Add", {"v", "epsilon"}, {"e"}).node("Sqrt", {"e"}, {"r"});
  model.node("Div", {"d", "r"}, {"n"}).node("Mul", {"n", "ln.weight"}, {"g"}).node("Add", {"g", "ln.bias"}, {"y"});
  EXPECT_EQ(computing_operations(model.output("y")),
            Lines{"ln normalization form=layer;batch=10;channels=16;height=1;width=1"});
  EXPECT_EQ(read_onnx(model.bytes(), {})->weight_element_count, 32);
}

TEST(OnnxFusions, TheRootOfAMeanSquareIsARootMeanSquareNorm) {
  OnnxModel model = model_with_token_input();
  model.weight("norm.weight", {16}).node("Pow", {"x", "two"}, {"p"}, {}, "/norm/Pow");
  model.node("ReduceMean", {"p"}, {"v"}, {integers("axes", {-1})}, "/norm/ReduceMean").scalar("epsilon", 1e-5F);
  model.node("Add", {"v", "epsilon"}, {"e"}).node("Sqrt", {"e"}, {"r"}).node("Div", {"one", "r"}, {"i"});
  model.node("Mul", {"x", "i"}, {"n"}).node("Mul", {"norm.weight", "n"}, {"y"}).output("y");
  EXPECT_EQ(computing_operations(model), Lines{"norm normalization form=rms;batch=10;channels=16;height=1;width=1"});
}

TEST(OnnxFusions, AnAdditionOfWeightsBehindAProductIsItsBias) {
  OnnxModel model = model_with_token_input();
  model.weight("w", {16, 4}).weight("b", {4}).node("MatMul", {"x", "w"}, {"p"}, {}, "/fc/MatMul");
  model.node("Add", {"b", "p"}, {"y"}, {}, "/fc/Add").output("y");
  EXPECT_EQ(computing_operations(model), Lines{"fc dense rows=10;in=16;out=4;bias=1"});
}

// scaled_dot_product_attention and the surrounding head reshapes, as PyTorch's exporters write them.
TEST(OnnxFusions, SoftmaxBetweenProductsIsAttention) {
  OnnxModel model;
  model.input("q", {2, 8, 5, 16}).input("k", {2, 8, 7, 16}).input("v", {2, 8, 7, 16}).input("mask", {2, 1, 5, 7});
  model.scalar("scale", 0.5F).node("Mul", {"q", "scale"}, {"qs"});
  model.node("Transpose", {"k"}, {"kt"}, {integers("perm", {0, 1, 3, 2})}).node("Mul", {"kt", "scale"}, {"ks"});
  model.node("MatMul", {"qs", "ks"}, {"s"})
      .node("Add", {"s", "mask"}, {"m"})
      .node("Softmax", {"m"}, {"p"}, {}, "/attn/Softmax");
  model.node("IsNaN", {"p"}, {"bad"}).scalar("zero", 0).node("Where", {"bad", "zero", "p"}, {"g"});
  model.node("MatMul", {"g", "v"}, {"o"}).node("Transpose", {"o"}, {"t"}, {integers("perm", {0, 2, 1, 3})});
  model.list("target", {2, 5, 128}).node("Reshape", {"t", "target"}, {"y"}).output("y");
  EXPECT_EQ(computing_operations(model), Lines{"attn attention batch=2;heads=8;queries=5;keys=7;width=16"});
}

TEST(OnnxFusions, ASoftmaxOfLogitsIsNoAttention) {
  OnnxModel model = model_with_token_input();
  model.weight("w", {16, 4}).node("MatMul", {"x", "w"}, {"p"}, {}, "/fc/MatMul");
  model.node("Softmax", {"p"}, {"y"}, {}, "/prob/Softmax").output("y");
  EXPECT_EQ(computing_operations(model),
            (Lines{"fc dense rows=10;in=16;out=4;bias=0", "prob activation form=softmax;batch=2;rows=5;width=4"}));
}

TEST(OnnxFusions, InstanceNormOverGroupsIsGroupNorm) {
  OnnxModel model;
  model.input("x", {2, 8, 4, 4})
      .list("groups", {0, 2, -1})
      .list("back", {2, 8, 4, 4})
      .weight("ones", {2})
      .weight("zeros", {2});
  model.weight("g", {8, 1, 1}).weight("b", {8, 1, 1}).node("Reshape", {"x", "groups"}, {"r"});
  model.node("InstanceNormalization", {"r", "ones", "zeros"}, {"n"}, {}, "/gn/InstanceNormalization");
  model.node("Reshape", {"n", "back"}, {"i"}).node("Mul", {"i", "g"}, {"s"}).node("Add", {"s", "b"}, {"y"}).output("y");
  EXPECT_EQ(computing_operations(model), Lines{"gn normalization form=group;batch=2;channels=8;height=4;width=4"});
}

}  // namespace
}  // namespace joulemap::predict
