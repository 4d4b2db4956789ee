// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/training_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace joulemap::predict {
namespace {

Operation operation(std::string layer, Kind kind, std::string operation_form, OperationParameters parameters) {
  Operation new_operation;
  new_operation.layer = std::move(layer);
  new_operation.source = "aten";
  new_operation.kind = kind;
  new_operation.form = std::move(operation_form);
  new_operation.parameters = std::move(parameters);
  return new_operation;
}

Operation tensor(std::string layer, Kind kind, std::string operation_form) {
  return operation(std::move(layer), kind, std::move(operation_form), {{"batch", 8}, {"rows", 16}, {"width", 49}});
}

Operation convolution(std::string layer) {
  return operation(std::move(layer), Kind::convolution, "",
                   {{"batch", 8},
                    {"channels", 3},
                    {"out", 16},
                    {"height", 7},
                    {"width", 7},
                    {"kernel", 3},
                    {"stride", 1},
                    {"padding", 1},
                    {"dilation", 1},
                    {"groups", 1},
                    {"bias", 0}});
}

Operation dense(std::string layer, std::int64_t rows, std::int64_t in, std::int64_t out) {
  return operation(std::move(layer), Kind::dense, "", {{"rows", rows}, {"in", in}, {"out", out}, {"bias", 1}});
}

Operation make_norm(std::string layer) {
  return operation(std::move(layer), Kind::normalization, "batch-inference",
                   {{"batch", 8}, {"channels", 16}, {"height", 7}, {"width", 7}});
}

Graph make_small_network() {
  Graph graph;
  graph.operations = {convolution("stem"), make_norm("norm"), tensor("relu", Kind::activation, "relu"),
                      operation("flat", Kind::view, "", {{"batch", 1}, {"rows", 1}, {"width", 1}}),
                      dense("head", 8, 784, 10)};
  graph.operations.front().gradient = NeededGradients::weights;
  graph.weight_tensor_count = 5;
  graph.weight_element_count = 8322;
  return graph;
}

std::string summary(const Operation& op) {
  return op.layer + " " + std::string(name_of(op.kind)) + " " + std::string(name_of(op.pass));
}

std::vector<std::string> summary(const std::vector<Operation>& operations) {
  std::vector<std::string> texts;
  texts.reserve(operations.size());
  for (const Operation& op : operations) texts.push_back(summary(op));
  return texts;
}

// The operations that follow the loss.
std::vector<Operation> operations_after_loss(const Graph& graph) {
  std::vector<Operation> step = make_training_step(graph, "sgd");
  const auto is_loss = [](const Operation& op) { return op.kind == Kind::loss && op.pass == Pass::forward; };
  step.erase(step.begin(), std::find_if(step.begin(), step.end(), is_loss) + 1);
  return step;
}

Graph graph_with_head(std::vector<Operation> operations) {
  Graph graph;
  graph.operations = std::move(operations);
  graph.operations.push_back(dense("head", 8, 784, 10));
  return graph;
}

TEST(TrainingStep, RunsForwardLossBackwardAndOptimizer) {
  const std::vector<Operation> step = make_training_step(make_small_network(), "adamw");
  EXPECT_EQ(summary(step),
            (std::vector<std::string>{"stem convolution forward", "norm add forward", "norm normalization forward",
                                      "relu activation forward", "flat view forward", "head dense forward",
                                      "loss loss forward", "loss loss backward", "head dense backward",
                                      "flat view forward", "relu activation backward", "norm normalization backward",
                                      "stem convolution backward-weights", "optimizer optimizer optimizer"}));
  EXPECT_EQ(step.back().form, "adamw");
  EXPECT_EQ(step.back().parameters, (OperationParameters{{"tensors", 5}, {"elements", 8322}}));
}

TEST(TrainingStep, NormsUseTheStatisticsOfTheBatchAndCountIt) {
  const std::vector<Operation> step = make_training_step(make_small_network(), "sgd");
  EXPECT_EQ(step[1].parameters, (OperationParameters{{"batch", 1}, {"rows", 1}, {"width", 1}}));
  EXPECT_EQ(step[2].form, "batch");
  EXPECT_EQ(step[11].form, "batch");
}

TEST(TrainingStep, AFrozenNormKeepsItsStatistics) {
  Graph graph = make_small_network();
  graph.operations[1].parameters.set("frozen", 1);
  const std::vector<Operation> step = make_training_step(graph, "sgd");
  EXPECT_EQ(summary(step[1]), "norm normalization forward");  // no batch is counted
  EXPECT_EQ(step[1].form, "batch-inference");
}

TEST(TrainingStep, TheLossHasTheSizeOfTheOutputAfterPooling) {
  EXPECT_EQ(make_training_step(make_small_network(), "sgd")[6].parameters,
            (OperationParameters{{"rows", 8}, {"classes", 10}}));
  Graph pixels;
  pixels.operations = {convolution("head")};
  EXPECT_EQ(make_training_step(pixels, "sgd")[1].parameters, (OperationParameters{{"rows", 392}, {"classes", 16}}));
  pixels.operations.push_back(operation("pool", Kind::pooling, "adaptive",
                                        {{"batch", 8}, {"channels", 16}, {"height", 7}, {"width", 7}, {"out", 1}}));
  EXPECT_EQ(make_training_step(pixels, "sgd")[2].parameters, (OperationParameters{{"rows", 8}, {"classes", 16}}));
}

TEST(TrainingStep, ComputesTheLossIn32BitsAndCastsItsInput) {
  Graph graph = graph_with_head({});
  graph.operations.back().dtype = Dtype::bf16;
  const std::vector<Operation> step = make_training_step(graph, "sgd");
  ASSERT_EQ(summary(step),
            (std::vector<std::string>{"head dense forward", "loss cast forward", "loss loss forward",
                                      "loss loss backward", "loss cast forward", "head dense backward"}));
  EXPECT_EQ(step[2].dtype, Dtype::fp32);
  EXPECT_EQ(step[4].form, "bf16") << "the gradient is cast back";
  EXPECT_EQ(step[4].dtype, Dtype::fp32);
}

TEST(TrainingStep, AddsNoSecondLoss) {
  Graph graph = graph_with_head({});
  graph.operations.push_back(operation("mine", Kind::loss, "", {{"rows", 8}, {"classes", 10}}));
  EXPECT_EQ(summary(make_training_step(graph, "sgd")),
            (std::vector<std::string>{"head dense forward", "mine loss forward", "mine loss backward",
                                      "head dense backward"}));
}

TEST(TrainingStep, OperationsBeforeTheFirstTrainableOneHaveNoBackward) {
  Graph graph = graph_with_head({tensor("scale", Kind::multiply, "scalar"), tensor("act", Kind::activation, "relu")});
  graph.operations[0].gradient = NeededGradients::none;
  graph.operations[1].gradient = NeededGradients::weights;  // but an activation has no weights
  EXPECT_EQ(summary(operations_after_loss(graph)),
            (std::vector<std::string>{"loss loss backward", "head dense backward"}));
}

TEST(TrainingStep, CopiesAndScalarProductsRunAgainInBackward) {
  const Graph graph =
      graph_with_head({tensor("order", Kind::reshape, "heads"), tensor("scale", Kind::multiply, "scalar")});
  EXPECT_EQ(summary(operations_after_loss(graph)),
            (std::vector<std::string>{"loss loss backward", "head dense backward", "scale multiply forward",
                                      "order reshape forward"}));
}

TEST(TrainingStep, AdditionsPassTheirGradientThrough) {
  const Graph graph = graph_with_head({tensor("shift", Kind::add, "scalar"), tensor("sum", Kind::reduce, "sum")});
  EXPECT_EQ(summary(operations_after_loss(graph)),
            (std::vector<std::string>{"loss loss backward", "head dense backward"}));
}

TEST(TrainingStep, AddsGradientsOfAResidual) {
  const Graph graph = graph_with_head({tensor("residual", Kind::add, "same")});
  EXPECT_EQ(summary(operations_after_loss(graph)).back(), "residual add forward");
}

TEST(TrainingStep, AddsGradientsOfBranchesAndSplitsByViews) {
  Operation concatenation = tensor("join", Kind::concatenate, "");
  concatenation.parameters.set("parts", 3);
  const std::vector<Operation> backward_operations = operations_after_loss(graph_with_head({concatenation}));
  ASSERT_EQ(summary(backward_operations), (std::vector<std::string>{"loss loss backward", "head dense backward",
                                                                    "join view forward", "join add forward"}));
  EXPECT_EQ(backward_operations[2].count, 3);
  EXPECT_EQ(backward_operations[3].count, 2);
  const Graph gated = graph_with_head({tensor("gate", Kind::multiply, "row")});
  EXPECT_EQ(summary(operations_after_loss(gated)),
            (std::vector<std::string>{"loss loss backward", "head dense backward", "gate multiply backward",
                                      "gate add forward"}));
}

TEST(TrainingStep, AddsGradientsOfASharedProductInput) {
  Graph graph = graph_with_head({dense("query", 8, 784, 784), dense("key", 8, 784, 784), dense("value", 8, 784, 784),
                                 tensor("mix", Kind::activation, "gelu")});
  EXPECT_EQ(summary(operations_after_loss(graph)),
            (std::vector<std::string>{"loss loss backward", "head dense backward", "mix activation backward",
                                      "value dense backward", "value add forward", "key dense backward",
                                      "key add forward", "query dense backward"}));
}

TEST(TrainingStep, ATracedStepStaysUnchanged) {
  Graph graph = make_small_network();
  graph.operations.push_back(dense("head", 8, 784, 10));
  graph.operations.back().pass = Pass::backward;
  EXPECT_EQ(summary(make_training_step(graph, "sgd")), summary(graph.operations));
}

TEST(TrainingStep, OptimizesSixteenBitWeightsIn16Bits) {
  Graph graph = make_small_network();
  for (Operation& op : graph.operations) op.dtype = Dtype::bf16;
  EXPECT_EQ(make_training_step(graph, "sgd").back().dtype, Dtype::bf16);
  graph.operations.insert(graph.operations.begin(), tensor("stem", Kind::cast, "bf16"));
  EXPECT_EQ(make_training_step(graph, "sgd").back().dtype, Dtype::fp32) << "they are cast for each use";
}

TEST(TrainingStep, WithoutTrainableWeightsThereIsNoOptimizer) {
  EXPECT_EQ(summary(make_training_step(graph_with_head({}), "sgd")).back(), "head dense backward");
  EXPECT_TRUE(make_training_step(Graph{}, "sgd").empty());
}

}  // namespace
}  // namespace joulemap::predict
