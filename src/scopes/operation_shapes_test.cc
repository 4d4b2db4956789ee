// SPDX-License-Identifier: Apache-2.0
#include "scopes/operation_shapes.h"

#include <gtest/gtest.h>

namespace joulemap::scopes {
namespace {

std::string key(OperationKind kind, std::string_view operation, std::string_view tensors) {
  return shape_of_operation(kind, operation, tensors).key;
}

TEST(OperationShapes, EqualProductsHaveEqualShapes) {
  const std::string linear_key =
      key(OperationKind::matmul, "torch.nn.functional.linear", "[32,1024,768] [2304,768] [2304]");
  EXPECT_EQ(linear_key, "32768x2304x768");
  EXPECT_EQ(key(OperationKind::matmul, "aten::mm", "[32768,768] [768,2304]"), linear_key);
  EXPECT_EQ(key(OperationKind::matmul, "aten::addmm", "[2304] [32768,768] [768,2304]"), linear_key);
  EXPECT_EQ(key(OperationKind::matmul, "dot_general", "bfloat16[32,1024,768] bfloat16[768,2304]"), linear_key)
      << "in another precision, too";
}

TEST(OperationShapes, BatchedProductsKeepTheirBatch) {
  EXPECT_EQ(key(OperationKind::matmul, "torch.Tensor.__matmul__", "[16,12,512,64] [16,12,64,512]"), "192x512x512x64");
  EXPECT_EQ(key(OperationKind::matmul, "aten::bmm", "[192,512,64] [192,64,512]"), "192x512x512x64");
}

TEST(OperationShapes, AGradientHasTheShapeOfTheResult) {
  EXPECT_EQ(key(OperationKind::matmul, "AddmmBackward0", "[32768,2304]"), "32768x2304");
}

TEST(OperationShapes, ReshapedTensorsAreEqualWork) {
  EXPECT_EQ(key(OperationKind::elementwise, "torch.nn.functional.gelu", "[32,1024,768]"),
            key(OperationKind::elementwise, "torch.Tensor.mul", "[32768,768] [768]"));
  const OperationShape shape =
      shape_of_operation(OperationKind::elementwise, "torch.Tensor.mul", "[768] bfloat16[32768,768] and 2 more");
  EXPECT_EQ(shape.text, "[32768,768]");
  EXPECT_EQ(shape.type, "bfloat16");
}

TEST(OperationShapes, AConvolutionHasInputAndWeight) {
  EXPECT_EQ(key(OperationKind::convolution, "torch.conv2d", "[32,128,96,96] [128,128,3,3] [128]"),
            "[32,128,96,96] [128,128,3,3]");
}

TEST(OperationShapes, WithoutTensorsTheShapeIsUnknown) {
  for (const char* tensors : {"", "()", "net/dense/MatMul_1", "]["})
    EXPECT_EQ(key(OperationKind::matmul, "MatMul", tensors), "") << tensors;
  EXPECT_EQ(key(OperationKind::matmul, "MatMul", "[]"), "") << "a scalar is no factor";
}

}  // namespace
}  // namespace joulemap::scopes
