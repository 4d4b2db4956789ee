// SPDX-License-Identifier: Apache-2.0
#include "scopes/op_names.h"

#include <gtest/gtest.h>

#include <ostream>

namespace joulemap::ingest {

static void PrintTo(const OpPlace& place, std::ostream* out) {
  *out << place.phase << " | " << place.module << " | " << place.op;
}

namespace {

OpPlace place(std::string phase, std::string module, std::string op) { return {phase, module, op}; }

TEST(JaxNames, WhatIsDifferentiatedIsForwardAndItsTransposeIsBackward) {
  EXPECT_EQ(place_of_xla_op("jit(step)/jit(main)/jvp(Net)/layer_3/dot_general", true),
            place("forward", "layer_3", "dot_general"));
  EXPECT_EQ(place_of_xla_op("jit(step)/jit(main)/transpose(jvp(Net))/layer_3/dot_general", true),
            place("backward", "layer_3", "dot_general"));
}

TEST(JaxNames, NestedScopesAreOnePath) {
  EXPECT_EQ(place_of_xla_op("jit(step)/jvp(Net)/block_0/Dense_1/add", true),
            place("forward", "block_0.Dense_1", "add"));
  EXPECT_EQ(place_of_xla_op("jit(step)/jvp(loss)/Net/b0/LayerNorm_0/mul", true),
            place("forward", "Net.b0.LayerNorm_0", "mul"));
}

TEST(JaxNames, WhatIsComputedAgainForTheBackwardPassIsRecompute) {
  EXPECT_EQ(
      place_of_xla_op("jit(step)/transpose(jvp(loss))/Net/jvp(loss)/Net/checkpoint/rematted_computation/b1/tanh", true),
      place("recompute", "Net.b1", "tanh"));
  EXPECT_EQ(place_of_xla_op("jit(step)/transpose(jvp(loss))/Net/jvp(loss)/Net/checkpoint/b1/Dense_0/dot_general", true),
            place("backward", "Net.b1.Dense_0", "dot_general"));
}

TEST(JaxNames, InAProgramThatTrainsTheRestUpdatesParameters) {
  EXPECT_EQ(place_of_xla_op("jit(step)/sgd/sub", true), place("optimizer", "sgd", "sub"));
  EXPECT_EQ(place_of_xla_op("jit(step)/sub", true), place("optimizer", "", "sub"));
}

TEST(JaxNames, WithoutGradientsEverythingIsForward) {
  EXPECT_EQ(place_of_xla_op("jit(predict)/Net/Dense_0/dot_general", false), place("forward", "Dense_0", "dot_general"));
  EXPECT_EQ(place_of_xla_op("jit(predict)/dot_general", false), place("forward", "", "dot_general"));
}

TEST(JaxNames, FunctionsAndLoopsWithinAreNoLayers) {
  EXPECT_EQ(place_of_xla_op("jit(step)/jvp(Net)/while/body/layers/jit(log_softmax)/sub", true),
            place("forward", "layers", "sub"));
  EXPECT_EQ(place_of_xla_op("jit(step)/jvp(Net)/vmap(head)/dot_general", true),
            place("forward", "head", "dot_general"));
}

TEST(JaxNames, WhatWasDifferentiatedIsThePathWhereNothingIsWithin) {
  EXPECT_EQ(place_of_xla_op("jit(step)/jvp(Net)/reduce_sum", true), place("forward", "Net", "reduce_sum"));
}

TEST(JaxNames, ANameWithoutScopesSaysNothingOfItsPhase) {
  EXPECT_EQ(place_of_xla_op("reduce_sum", true), place("", "", "reduce_sum"));
}

TEST(JaxNames, TellsGradientsApart) {
  EXPECT_TRUE(is_of_gradients("jit(step)/transpose(jvp(Net))/mul"));
  EXPECT_FALSE(is_of_gradients("jit(step)/Net/transpose"));
}

TEST(JaxNames, OddNamesDoNoHarm) {
  for (const std::string_view name : {"", "/", "((", "))", "jvp(", "a(b/c", "transpose(jvp())", "///x"}) {
    static_cast<void>(place_of_xla_op(name, true));
    static_cast<void>(place_of_tensorflow_op(name, "", {}));
    static_cast<void>(place_of_onnx_node(name, ""));
  }
}

const ScopeTable& keras() {
  static const ScopeTable scopes = {{"sequential_1", {"", "sequential"}},
                                    {"sequential_1/dense_1", {"", "dense"}},
                                    {"sequential_1/dense_1_2", {"", "dense_1"}},
                                    {"adam", {"optimizer", "adam"}},
                                    {"adam/Sub_30", {"optimizer", "dense_1"}},
                                    {"compile_loss", {"loss", "compile_loss"}},
                                    {"AddN_2", {"backward", "dense"}}};
  return scopes;
}

TEST(KerasNames, TheTableTellsWhichLayerAScopeIsOf) {
  EXPECT_EQ(place_of_tensorflow_op("StatefulPartitionedCall/sequential_1/dense_1_2/Relu", "_FusedMatMul", keras()),
            place("forward", "dense_1", "_FusedMatMul"));
  EXPECT_EQ(place_of_tensorflow_op("StatefulPartitionedCall/sequential_1/dense_1/Cast/ReadVariableOp", "ReadVariableOp",
                                   keras()),
            place("forward", "dense", "ReadVariableOp"));
}

TEST(KerasNames, TheTapeOfGradientsIsBackward) {
  EXPECT_EQ(place_of_tensorflow_op("StatefulPartitionedCall/gradient_tape/sequential_1/dense_1_2/MatMul/MatMul_1",
                                   "MatMul", keras()),
            place("backward", "dense_1", "MatMul"));
  EXPECT_EQ(place_of_tensorflow_op("gradient_tape/compile_loss/mse/Mul", "Mul", keras()),
            place("backward", "compile_loss", "Mul"));
  EXPECT_EQ(place_of_tensorflow_op("AddN_2", "AddN", keras()), place("backward", "dense", "AddN"));
}

TEST(KerasNames, AnUpdateBelongsToTheLayerItUpdatesWhereThatWasTold) {
  EXPECT_EQ(place_of_tensorflow_op("StatefulPartitionedCall/adam/Sub_30/ReadVariableOp", "ReadVariableOp", keras()),
            place("optimizer", "dense_1", "ReadVariableOp"));
  EXPECT_EQ(place_of_tensorflow_op("StatefulPartitionedCall/adam/Sub_31", "Sub", keras()),
            place("optimizer", "adam", "Sub"));
}

TEST(KerasNames, WithoutATableNamesAreTakenAsTheyAreWritten) {
  EXPECT_EQ(place_of_tensorflow_op("gradient_tape/model/block/dense_2/MatMul/MatMul_1", "", {}),
            place("backward", "block.dense_2", "MatMul"));
  EXPECT_EQ(place_of_tensorflow_op("model/batch_norm/moments/mean", "Mean", {}),
            place("forward", "batch_norm", "Mean"));
  EXPECT_EQ(place_of_tensorflow_op("adam/Sub_3", "Sub", {}), place("optimizer", "adam", "Sub"));
  EXPECT_EQ(place_of_tensorflow_op("compile_loss/mse/Mean", "Mean", {}), place("loss", "mse", "Mean"));
  EXPECT_EQ(place_of_tensorflow_op("AddN_1", "AddN", {}), place("backward", "", "AddN"));
  EXPECT_EQ(place_of_tensorflow_op("Cast_3", "Cast", {}), place("", "", "Cast"));
}

TEST(TensorFlow1Names, AGradientBelongsToTheLayerOfItsOperation) {
  EXPECT_EQ(place_of_tensorflow_op("gradients/dense/MatMul_grad/MatMul", "MatMul", {}),
            place("backward", "dense", "MatMul"));
  EXPECT_EQ(place_of_tensorflow_op("train/gradients_1/net/block/dense/add_grad/Reshape_1", "Reshape", {}),
            place("backward", "block.dense", "Reshape"));
  EXPECT_EQ(place_of_tensorflow_op("gradients/AddN_3", "AddN", {}), place("backward", "", "AddN"));
  EXPECT_EQ(place_of_tensorflow_op("gradients/loss_grad/Tile", "Tile", {}), place("backward", "", "Tile"));
}

TEST(TensorFlow1Names, AnUpdateBelongsToTheLayerWhoseVariableItIs) {
  EXPECT_EQ(place_of_tensorflow_op("Adam/update_net/dense/kernel/ResourceApplyAdam", "ResourceApplyAdam", {}),
            place("optimizer", "dense", "ResourceApplyAdam"));
  EXPECT_EQ(
      place_of_tensorflow_op("Adam/update_net/dense/kernel/ResourceApplyAdam/ReadVariableOp_1", "ReadVariableOp", {}),
      place("optimizer", "dense", "ReadVariableOp"));
  EXPECT_EQ(place_of_tensorflow_op("train/Momentum_1/update_conv1/weights/ApplyMomentum", "ApplyMomentum", {}),
            place("optimizer", "conv1", "ApplyMomentum"));
  EXPECT_EQ(place_of_tensorflow_op("GradientDescent/update_w/ApplyGradientDescent", "ApplyGradientDescent", {}),
            place("optimizer", "GradientDescent", "ApplyGradientDescent"));
  EXPECT_EQ(place_of_tensorflow_op("Adam/learning_rate", "Const", {}), place("optimizer", "Adam", "Const"));
}

TEST(OnnxNames, PathsAreWrittenOncePerLevelAndReadOnce) {
  EXPECT_EQ(place_of_onnx_node("/layer1/layer1.0/conv1/Conv", "Conv"), place("forward", "layer1.0.conv1", "Conv"));
  EXPECT_EQ(place_of_onnx_node("/encoder/layers/layers.3/attn/MatMul_1", "MatMul"),
            place("forward", "encoder.layers.3.attn", "MatMul"));
  EXPECT_EQ(place_of_onnx_node("Gemm_4", "Gemm"), place("forward", "", "Gemm"));
  EXPECT_EQ(place_of_onnx_node("/fc/Gemm", ""), place("forward", "fc", "Gemm"));
}

}  // namespace
}  // namespace joulemap::ingest
