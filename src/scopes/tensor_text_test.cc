// SPDX-License-Identifier: Apache-2.0
#include "scopes/tensor_text.h"

#include <gtest/gtest.h>

namespace joulemap::scopes {
namespace {

TEST(TensorText, ListsShapesOfPyTorchInOrderWithoutNonTensors) {
  EXPECT_EQ(parse_kineto_tensors("[[64, 3, 224, 224], [64, 3, 7, 7], [], [2, 2], []]",
                                 R"(["float", "float", "", "ScalarList", "Scalar"])"),
            "[64,3,224,224] [64,3,7,7]");
}

TEST(TensorText, PrefixesTypesOtherThanFloat32) {
  EXPECT_EQ(parse_kineto_tensors("[[2, 10], [2], []]", R"(["c10::BFloat16", "long int", "double"])"),
            "bfloat16[2,10] int64[2] float64[]");
  EXPECT_EQ(parse_onnxruntime_tensors(R"([{"float":[1,3]},{"int64":[]},{"float16":[7]}])"), "[1,3] int64[] float16[7]");
}

TEST(TensorText, ExpandsAListOfTensors) {
  EXPECT_EQ(parse_kineto_tensors("[[[2, 3], [4]], [5]]", R"(["TensorList", "float"])"), "[2,3] [4] [5]");
  EXPECT_EQ(parse_kineto_tensors("[[], [5]]", R"(["TensorList", "float"])"), "[5]");
}

TEST(TensorText, MarksAnOperationWithoutTensors) {
  EXPECT_EQ(parse_kineto_tensors("[[], []]", R"(["ScalarList", "Scalar"])"), "()");
  EXPECT_EQ(parse_onnxruntime_tensors("[]"), "()");
}

TEST(TensorText, ListsTheFirstOfManyTensors) {
  TensorText text;
  for (int i = 0; i < 11; ++i) text.add_tensor("float", "1, 2");
  EXPECT_EQ(text.text(), "[1,2] [1,2] [1,2] [1,2] [1,2] [1,2] [1,2] [1,2] and 3 more");
}

TEST(TensorText, WithoutTypesOnlyShapesWithNumbersAreTensors) {
  EXPECT_EQ(parse_kineto_tensors("[[2, 3], [], [4]]", ""), "[2,3] [4]");
}

TEST(TensorText, DamagedTextsGiveNothingOrTheirContent) {
  EXPECT_EQ(parse_kineto_tensors("", ""), "");
  EXPECT_EQ(parse_kineto_tensors("7", "[]"), "");
  EXPECT_EQ(parse_kineto_tensors("[[2, 3", R"(["float)"), "()");
  EXPECT_EQ(parse_kineto_tensors("]]][[2]]", R"(["float"])"), "");
  EXPECT_EQ(parse_onnxruntime_tensors("{}"), "");
}

TEST(TensorFlowTensors, InputsThatAreNotTensorsAreOmitted) {
  EXPECT_EQ(parse_tensorflow_tensors("(float[256,64];;int32[];half[2])"), "[256,64] int32[] float16[2]");
  EXPECT_EQ(parse_tensorflow_tensors("()"), "()");
  for (const char* const text : {"", "(", "float[2]", "(float[2]"})
    EXPECT_EQ(parse_tensorflow_tensors(text), "") << text;
}

TEST(TensorFlowTensors, ANodeIsFollowedByItsTensors) {
  EXPECT_EQ(append_tensors_to_node("net/MatMul_1", "[2,3]"), "net/MatMul_1 [2,3]");
  EXPECT_EQ(append_tensors_to_node("net/MatMul_1", ""), "net/MatMul_1");
  EXPECT_TRUE(has_tensor_text("net/MatMul_1 [2,3]"));
  EXPECT_TRUE(has_tensor_text("net/NoOp ()"));
  EXPECT_FALSE(has_tensor_text("net/MatMul_1"));
}

}  // namespace
}  // namespace joulemap::scopes
