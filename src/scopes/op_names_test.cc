// SPDX-License-Identifier: Apache-2.0
#include "scopes/op_names.h"

#include <gtest/gtest.h>

#include <ostream>

namespace joulemap::scopes {

static void PrintTo(const OpScope& scope, std::ostream* out) {
  *out << scope.phase << " | " << scope.module << " | " << scope.op;
}

namespace {

OpScope scope(std::string phase, std::string module, std::string op) { return {phase, module, op}; }

TEST(JaxNames, JvpIsForwardAndTransposeIsBackward) {
  EXPECT_EQ(scope_of_xla_op("jit(step)/jit(main)/jvp(Net)/layer_3/dot_general", true),
            scope("forward", "layer_3", "dot_general"));
  EXPECT_EQ(scope_of_xla_op("jit(step)/jit(main)/transpose(jvp(Net))/layer_3/dot_general", true),
            scope("backward", "layer_3", "dot_general"));
}

TEST(JaxNames, NestedScopesFormOnePath) {
  EXPECT_EQ(scope_of_xla_op("jit(step)/jvp(Net)/block_0/Dense_1/add", true),
            scope("forward", "block_0.Dense_1", "add"));
  EXPECT_EQ(scope_of_xla_op("jit(step)/jvp(loss)/Net/b0/LayerNorm_0/mul", true),
            scope("forward", "Net.b0.LayerNorm_0", "mul"));
}

TEST(JaxNames, RecomputationForTheBackwardPassIsRecompute) {
  EXPECT_EQ(
      scope_of_xla_op("jit(step)/transpose(jvp(loss))/Net/jvp(loss)/Net/checkpoint/rematted_computation/b1/tanh", true),
      scope("recompute", "Net.b1", "tanh"));
  EXPECT_EQ(scope_of_xla_op("jit(step)/transpose(jvp(loss))/Net/jvp(loss)/Net/checkpoint/b1/Dense_0/dot_general", true),
            scope("backward", "Net.b1.Dense_0", "dot_general"));
}

TEST(JaxNames, InATrainingProgramTheRestIsTheOptimizer) {
  EXPECT_EQ(scope_of_xla_op("jit(step)/sgd/sub", true), scope("optimizer", "sgd", "sub"));
  EXPECT_EQ(scope_of_xla_op("jit(step)/sub", true), scope("optimizer", "", "sub"));
}

TEST(JaxNames, WithoutGradientsEverythingIsForward) {
  EXPECT_EQ(scope_of_xla_op("jit(predict)/Net/Dense_0/dot_general", false), scope("forward", "Dense_0", "dot_general"));
  EXPECT_EQ(scope_of_xla_op("jit(predict)/dot_general", false), scope("forward", "", "dot_general"));
}

TEST(JaxNames, InnerFunctionsAndLoopsAreNoLayers) {
  EXPECT_EQ(scope_of_xla_op("jit(step)/jvp(Net)/while/body/layers/jit(log_softmax)/sub", true),
            scope("forward", "layers", "sub"));
  for (const char* const branch : {"branch_0_fun", "branch_1_fun", "branch_12_fun"}) {
    EXPECT_EQ(scope_of_xla_op(std::string("jit(step)/jvp(Net)/cond/") + branch + "/layers/sub", true),
              scope("forward", "layers", "sub"));
  }
  EXPECT_EQ(scope_of_xla_op("jit(step)/jvp(Net)/branch_left_fun/sub", true),
            scope("forward", "branch_left_fun", "sub"));
  EXPECT_EQ(scope_of_xla_op("jit(step)/jvp(Net)/vmap(head)/dot_general", true),
            scope("forward", "head", "dot_general"));
}

TEST(JaxNames, TheDifferentiatedFunctionIsThePathWithoutInnerScopes) {
  EXPECT_EQ(scope_of_xla_op("jit(step)/jvp(Net)/reduce_sum", true), scope("forward", "Net", "reduce_sum"));
}

TEST(JaxNames, ANameWithoutScopesHasNoPhase) {
  EXPECT_EQ(scope_of_xla_op("reduce_sum", true), scope("", "", "reduce_sum"));
}

TEST(JaxNames, RecognizesGradients) {
  EXPECT_TRUE(is_gradient_op("jit(step)/transpose(jvp(Net))/mul"));
  EXPECT_FALSE(is_gradient_op("jit(step)/Net/transpose"));
}

TEST(JaxNames, SurvivesMalformedNames) {
  for (const std::string_view name : {"", "/", "((", "))", "jvp(", "a(b/c", "transpose(jvp())", "///x"}) {
    static_cast<void>(scope_of_xla_op(name, true));
    static_cast<void>(scope_of_tensorflow_op(name, "", {}));
    static_cast<void>(scope_of_onnx_node(name, ""));
  }
}

const NameScopes& keras_name_scopes() {
  static const NameScopes name_scopes = {{"sequential_1", {"", "sequential"}},
                                         {"sequential_1/dense_1", {"", "dense"}},
                                         {"sequential_1/dense_1_2", {"", "dense_1"}},
                                         {"adam", {"optimizer", "adam"}},
                                         {"adam/Sub_30", {"optimizer", "dense_1"}},
                                         {"compile_loss", {"loss", "compile_loss"}},
                                         {"AddN_2", {"backward", "dense"}}};
  return name_scopes;
}

TEST(KerasNames, TheTableMapsScopesToLayers) {
  EXPECT_EQ(scope_of_tensorflow_op("StatefulPartitionedCall/sequential_1/dense_1_2/Relu", "_FusedMatMul",
                                   keras_name_scopes()),
            scope("forward", "dense_1", "_FusedMatMul"));
  EXPECT_EQ(scope_of_tensorflow_op("StatefulPartitionedCall/sequential_1/dense_1/Cast/ReadVariableOp", "ReadVariableOp",
                                   keras_name_scopes()),
            scope("forward", "dense", "ReadVariableOp"));
}

TEST(KerasNames, GradientTapeIsBackward) {
  EXPECT_EQ(scope_of_tensorflow_op("StatefulPartitionedCall/gradient_tape/sequential_1/dense_1_2/MatMul/MatMul_1",
                                   "MatMul", keras_name_scopes()),
            scope("backward", "dense_1", "MatMul"));
  EXPECT_EQ(scope_of_tensorflow_op("gradient_tape/compile_loss/mse/Mul", "Mul", keras_name_scopes()),
            scope("backward", "compile_loss", "Mul"));
  EXPECT_EQ(scope_of_tensorflow_op("AddN_2", "AddN", keras_name_scopes()), scope("backward", "dense", "AddN"));
}

TEST(KerasNames, AnUpdateBelongsToItsLayerWhereTheTableHasIt) {
  EXPECT_EQ(scope_of_tensorflow_op("StatefulPartitionedCall/adam/Sub_30/ReadVariableOp", "ReadVariableOp",
                                   keras_name_scopes()),
            scope("optimizer", "dense_1", "ReadVariableOp"));
  EXPECT_EQ(scope_of_tensorflow_op("StatefulPartitionedCall/adam/Sub_31", "Sub", keras_name_scopes()),
            scope("optimizer", "adam", "Sub"));
}

TEST(KerasNames, WithoutATableNamesAreUsedVerbatim) {
  EXPECT_EQ(scope_of_tensorflow_op("gradient_tape/model/block/dense_2/MatMul/MatMul_1", "", {}),
            scope("backward", "block.dense_2", "MatMul"));
  EXPECT_EQ(scope_of_tensorflow_op("model/batch_norm/moments/mean", "Mean", {}),
            scope("forward", "batch_norm", "Mean"));
  EXPECT_EQ(scope_of_tensorflow_op("adam/Sub_3", "Sub", {}), scope("optimizer", "adam", "Sub"));
  EXPECT_EQ(scope_of_tensorflow_op("compile_loss/mse/Mean", "Mean", {}), scope("loss", "mse", "Mean"));
  EXPECT_EQ(scope_of_tensorflow_op("AddN_1", "AddN", {}), scope("backward", "", "AddN"));
  EXPECT_EQ(scope_of_tensorflow_op("Cast_3", "Cast", {}), scope("", "", "Cast"));
}

TEST(TensorFlowNames, AnOperationWithoutScopeHasNoLayer) {
  EXPECT_EQ(scope_of_tensorflow_op("MatMul/ReadVariableOp", "ReadVariableOp", {}),
            scope("forward", "", "ReadVariableOp"));
  EXPECT_EQ(scope_of_tensorflow_op("gradient_tape/MatMul/MatMul_1", "MatMul", {}), scope("backward", "", "MatMul"));
  EXPECT_EQ(scope_of_tensorflow_op("gradient_tape/Mean/truediv", "RealDiv", {}), scope("backward", "", "RealDiv"));
  EXPECT_EQ(scope_of_tensorflow_op("gradient_tape/BiasAdd/BiasAddGrad", "BiasAddGrad", {}),
            scope("backward", "", "BiasAddGrad"));
  EXPECT_EQ(scope_of_tensorflow_op("Encoder/MatMul", "MatMul", {}), scope("forward", "Encoder", "MatMul"));
  EXPECT_EQ(scope_of_tensorflow_op("gradient_tape/Encoder/MatMul/MatMul_1", "MatMul", {}),
            scope("backward", "Encoder", "MatMul"));
  EXPECT_EQ(scope_of_tensorflow_op("gradient_tape/Encoder/ReluGrad", "ReluGrad", {}),
            scope("backward", "Encoder", "ReluGrad"));
}

TEST(TensorFlowNames, AScopeNamedLossIsThePhaseLoss) {
  EXPECT_EQ(scope_of_tensorflow_op("loss/Mean", "Mean", {}), scope("loss", "loss", "Mean"));
  EXPECT_EQ(scope_of_tensorflow_op("gradient_tape/loss/Mean/Tile", "Tile", {}), scope("backward", "loss", "Tile"));
}

TEST(TensorFlowNames, AGradientOfANestedFunctionBelongsToItsLayer) {
  EXPECT_EQ(scope_of_tensorflow_op("PartitionedCall/gradients/net/second/MatMul_grad/MatMul_1", "MatMul", {}),
            scope("backward", "second", "MatMul"));
  EXPECT_EQ(scope_of_tensorflow_op("gradient_tape/PartitionedCall_1/gradients/net/second/MatMul_grad/MatMul", "", {}),
            scope("backward", "second", "MatMul"));
}

TEST(TensorFlowNames, LayersOfTfSlimAreLayers) {
  EXPECT_EQ(scope_of_tensorflow_op("InceptionV3/Mixed_5b/Branch_0/Conv2d_0a_1x1/Conv2D", "Conv2D", {}),
            scope("forward", "Mixed_5b.Branch_0.Conv2d_0a_1x1", "Conv2D"));
  EXPECT_EQ(scope_of_tensorflow_op("InceptionV3/Conv2d_1a_3x3/BatchNorm/FusedBatchNormV3", "FusedBatchNormV3", {}),
            scope("forward", "Conv2d_1a_3x3", "FusedBatchNormV3"));
}

TEST(TensorFlowNames, ANodeIsNamedWithoutTheCallsAroundIt) {
  EXPECT_EQ(remove_call_name_parts("StatefulPartitionedCall/PartitionedCall_2/net/dense/MatMul_1"),
            "net/dense/MatMul_1");
}

TEST(TensorFlow1Names, AGradientBelongsToTheLayerOfItsOperation) {
  EXPECT_EQ(scope_of_tensorflow_op("gradients/dense/MatMul_grad/MatMul", "MatMul", {}),
            scope("backward", "dense", "MatMul"));
  EXPECT_EQ(scope_of_tensorflow_op("train/gradients_1/net/block/dense/add_grad/Reshape_1", "Reshape", {}),
            scope("backward", "block.dense", "Reshape"));
  EXPECT_EQ(scope_of_tensorflow_op("gradients/AddN_3", "AddN", {}), scope("backward", "", "AddN"));
  EXPECT_EQ(scope_of_tensorflow_op("gradients/loss_grad/Tile", "Tile", {}), scope("backward", "", "Tile"));
}

TEST(TensorFlow1Names, AnUpdateBelongsToTheLayerWhoseVariableItIs) {
  EXPECT_EQ(scope_of_tensorflow_op("Adam/update_net/dense/kernel/ResourceApplyAdam", "ResourceApplyAdam", {}),
            scope("optimizer", "dense", "ResourceApplyAdam"));
  EXPECT_EQ(
      scope_of_tensorflow_op("Adam/update_net/dense/kernel/ResourceApplyAdam/ReadVariableOp_1", "ReadVariableOp", {}),
      scope("optimizer", "dense", "ReadVariableOp"));
  EXPECT_EQ(scope_of_tensorflow_op("train/Momentum_1/update_conv1/weights/ApplyMomentum", "ApplyMomentum", {}),
            scope("optimizer", "conv1", "ApplyMomentum"));
  EXPECT_EQ(scope_of_tensorflow_op("GradientDescent/update_w/ApplyGradientDescent", "ApplyGradientDescent", {}),
            scope("optimizer", "GradientDescent", "ApplyGradientDescent"));
  EXPECT_EQ(scope_of_tensorflow_op("Adam/learning_rate", "Const", {}), scope("optimizer", "Adam", "Const"));
}

TEST(OnnxNames, PathsAreWrittenOncePerLevelAndReadOnce) {
  EXPECT_EQ(scope_of_onnx_node("/layer1/layer1.0/conv1/Conv", "Conv"), scope("forward", "layer1.0.conv1", "Conv"));
  EXPECT_EQ(scope_of_onnx_node("/encoder/layers/layers.3/attn/MatMul_1", "MatMul"),
            scope("forward", "encoder.layers.3.attn", "MatMul"));
  EXPECT_EQ(scope_of_onnx_node("Gemm_4", "Gemm"), scope("forward", "", "Gemm"));
  EXPECT_EQ(scope_of_onnx_node("/fc/Gemm", ""), scope("forward", "fc", "Gemm"));
}

}  // namespace
}  // namespace joulemap::scopes
