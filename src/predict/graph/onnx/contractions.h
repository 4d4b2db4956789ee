// SPDX-License-Identifier: Apache-2.0
//
// Sizes of nodes that combine several products: attention as one node, and Einsum. Sizes are in elements. Shape
// inference and the translation to operations use them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "predict/graph/onnx/onnx_model.h"

namespace joulemap::predict::onnx {

struct AttentionSizes {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t width = 0;  // of the queries and keys of a head
  std::int64_t value_width = 0;
  std::int64_t key_heads = 0;  // fewer than `heads` if several heads share keys and values
  bool causal = false;
};

// For Attention of ai.onnx, and MultiHeadAttention and GroupQueryAttention of com.microsoft. `inputs` are the sizes of
// the node's inputs, null where omitted.
Result<AttentionSizes> attention_sizes(const Node& node, const std::vector<const Sizes*>& inputs);
// For Attention of com.microsoft, which first multiplies its input by its weights.
Result<AttentionSizes> weighted_attention_sizes(const Node& node, const std::vector<const Sizes*>& inputs);

struct Contraction {
  Sizes out;
  // For a product of two operands: y[batch, m, n] = a[batch, m, k] b[batch, k, n]. All 0 for other equations.
  std::int64_t batch = 0;
  std::int64_t m = 0;
  std::int64_t k = 0;
  std::int64_t n = 0;
};
Result<Contraction> contraction_of(std::string_view equation, const std::vector<const Sizes*>& inputs);

}  // namespace joulemap::predict::onnx
