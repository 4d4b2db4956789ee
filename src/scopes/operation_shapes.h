// SPDX-License-Identifier: Apache-2.0
//
// OperationShape: the size of an operation's work, read from its input tensors as tensor_text.h writes them, such that
// equal work has equal shapes: a linear layer of [32,1024,768] and a product of [32768,768] are both 32768x2304x768. Pure
// functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scopes/operation_kinds.h"

namespace joulemap::scopes {

struct TensorShape {
  std::string type;  // "float32", "bfloat16" ...
  std::vector<std::int64_t> sizes;

  std::int64_t element_count() const;
};

// "bfloat16[64,3] [3] and 2 more" -> the two tensors. Empty for other texts, and for "()".
std::vector<TensorShape> parse_tensor_text(std::string_view text);

struct OperationShape {
  // Of a product rows x columns x inner size, with the batch before it; of a convolution its input and weight; of other
  // operations the largest tensor. Empty: unknown.
  std::string text;
  std::string key;  // equal for equal work; empty: unknown
  std::vector<std::int64_t> sizes;
  double element_count = 0;  // of the largest tensor
  std::string type;          // of the largest tensor; empty: unknown
};

// `operation`: its name, because the bias of addmm precedes its factors.
OperationShape shape_of_operation(OperationKind kind, std::string_view operation, std::string_view tensors);

}  // namespace joulemap::scopes
