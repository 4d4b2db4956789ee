// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "predict/graph/training_step.h"
#include "predict/model/predictor.h"

namespace joulemap::predict {
namespace {

Operation operation(Kind kind, std::string operation_form, OperationParameters parameters, std::string layer = "") {
  Operation new_operation;
  new_operation.layer = std::move(layer);
  new_operation.kind = kind;
  new_operation.form = std::move(operation_form);
  new_operation.parameters = std::move(parameters);
  return new_operation;
}

Operation tensor(Kind kind, std::string operation_form) {
  return operation(kind, std::move(operation_form), {{"batch", 1}, {"rows", 4}, {"width", 8}});
}
Operation dense(std::string layer) {
  return operation(Kind::dense, "", {{"rows", 4}, {"in", 8}, {"out", 8}, {"bias", 1}}, std::move(layer));
}
Operation convolution() {
  return operation(Kind::convolution, "",
                   {{"batch", 1}, {"channels", 8}, {"out", 8}, {"height", 2}, {"width", 2}, {"kernel", 1}}, "stem");
}
Operation make_norm(std::string operation_form) {
  return operation(Kind::normalization, std::move(operation_form),
                   {{"batch", 4}, {"channels", 8}, {"height", 1}, {"width", 1}});
}

Graph make_graph(std::vector<Operation> operations) {
  Graph graph;
  graph.format = "onnx";
  graph.operations = std::move(operations);
  return graph;
}

// "dense bf16", and for casts "cast fp32>bf16 64".
std::vector<std::string> format_operation_types(const Graph& graph) {
  std::vector<std::string> texts;
  for (const Operation& op : graph.operations) {
    std::string text = std::string(name_of(op.kind)) + " " + std::string(name_of(op.dtype));
    if (op.kind == Kind::cast) text += ">" + op.form + " " + std::to_string(op.parameters.get("width", 0));
    texts.push_back(text);
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST(Precision, ByDefaultOnlyConvolutionsAreTf32) {
  const Graph graph = make_graph({convolution(), tensor(Kind::activation, "relu"), dense("head")});
  EXPECT_EQ(format_operation_types(apply_precision(graph, Precision::framework_default)),
            (Texts{"convolution tf32", "activation fp32", "dense fp32"}));
  EXPECT_EQ(format_operation_types(apply_precision(graph, Precision::tf32)),
            (Texts{"convolution tf32", "activation fp32", "dense tf32"}));
  EXPECT_EQ(format_operation_types(apply_precision(graph, Precision::fp32)),
            (Texts{"convolution fp32", "activation fp32", "dense fp32"}));
  EXPECT_EQ(format_operation_types(apply_precision(graph, Precision::fp16)),
            (Texts{"convolution fp16", "activation fp16", "dense fp16"}));
}

TEST(Precision, SixteenBitOperationsStayUnchanged) {
  Graph graph = make_graph({dense("first"), dense("second")});
  graph.operations[0].dtype = Dtype::fp16;
  EXPECT_EQ(format_operation_types(apply_precision(graph, Precision::bf16)), (Texts{"dense fp16", "dense bf16"}));
  EXPECT_EQ(format_operation_types(apply_precision(graph, Precision::fp32)), (Texts{"dense fp16", "dense fp32"}));
}

TEST(Precision, AListFromPyTorchKeepsItsTypes) {
  Graph graph = make_graph({dense("first")});
  graph.format = "torch";
  graph.operations[0].dtype = Dtype::tf32;
  EXPECT_EQ(format_operation_types(apply_precision(graph, Precision::framework_default)), (Texts{"dense tf32"}));
  EXPECT_EQ(format_operation_types(apply_precision(graph, Precision::fp32)), (Texts{"dense fp32"}));
}

TEST(Precision, AutocastCastsProductInputsAndKeepsTheOutputIn16Bits) {
  const Graph graph = apply_precision(
      make_graph({convolution(), make_norm("batch-inference"), tensor(Kind::add, "same"), dense("head")}),
      Precision::amp_bf16);
  EXPECT_EQ(format_operation_types(graph),
            (Texts{"cast fp32>bf16 32", "cast fp32>bf16 64", "convolution bf16", "normalization bf16", "add bf16",
                   "cast fp32>bf16 64", "cast fp32>bf16 8", "dense bf16"}));
  EXPECT_EQ(graph.operations[1].layer, "stem");
}

TEST(Precision, AutocastNormsRowsAndAddsResidualsIn32Bits) {
  const Graph graph = apply_precision(make_graph({make_norm("layer"), dense("inner"), tensor(Kind::activation, "gelu"),
                                                  tensor(Kind::add, "same"), make_norm("layer")}),
                                      Precision::amp_bf16);
  EXPECT_EQ(format_operation_types(graph),
            (Texts{"normalization fp32", "cast fp32>bf16 32", "cast fp32>bf16 64", "cast fp32>bf16 8", "dense bf16",
                   "activation bf16", "add fp32", "normalization fp32"}));
}

TEST(Precision, AutocastCastsNormInputsTo32BitsButNotThoseOfSoftmax) {
  const Graph graph =
      apply_precision(make_graph({convolution(), make_norm("layer"), dense("a"), tensor(Kind::activation, "softmax")}),
                      Precision::amp_bf16);
  EXPECT_EQ(
      format_operation_types(graph),
      (Texts{"cast fp32>bf16 32", "cast fp32>bf16 64", "convolution bf16", "cast bf16>fp32 32", "normalization fp32",
             "cast fp32>bf16 32", "cast fp32>bf16 64", "cast fp32>bf16 8", "dense bf16", "activation fp32"}));
}

TEST(Precision, AutocastCastsTheSameInputForEachOfQueryKeyAndValue) {
  const Graph graph = apply_precision(make_graph({make_norm("layer"), dense("query"), dense("key"), dense("value")}),
                                      Precision::amp_bf16);
  const Texts texts = format_operation_types(graph);
  EXPECT_EQ(std::count(texts.begin(), texts.end(), "cast fp32>bf16 32"), 3);
}

TEST(Precision, GradientsOfAutocastsCastsAreCastBack) {
  Graph graph = apply_precision(make_graph({make_norm("layer"), dense("head")}), Precision::amp_bf16);
  graph.weight_tensor_count = 4;
  graph.weight_element_count = 88;
  graph.operations = make_training_step(graph, "adamw");
  const Texts texts = format_operation_types(graph);
  EXPECT_EQ(std::count_if(texts.begin(), texts.end(),
                          [](const std::string& text) { return text.rfind("cast bf16>fp32", 0) == 0; }),
            4)
      << "of input, weights, bias, and before the loss";
  EXPECT_EQ(texts.back(), "optimizer fp32");
}

}  // namespace
}  // namespace joulemap::predict
