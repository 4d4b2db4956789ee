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
  std::int64_t batch_size = 0;
  std::int64_t head_count = 0;
  std::int64_t query_count = 0;
  std::int64_t key_count = 0;
  std::int64_t width_per_head = 0;  // of the queries and keys of a head
  std::int64_t value_width_per_head = 0;
  std::int64_t key_head_count = 0;  // fewer than `head_count` if several heads share keys and values
  bool is_causal = false;
};

// For Attention of ai.onnx, and MultiHeadAttention and GroupQueryAttention of com.microsoft. `inputs` are the sizes of
// the node's inputs, null where omitted.
Result<AttentionSizes> attention_sizes(const Node& node, const std::vector<const Sizes*>& inputs);
// For Attention of com.microsoft, which first multiplies its input by its weights.
Result<AttentionSizes> weighted_attention_sizes(const Node& node, const std::vector<const Sizes*>& inputs);

struct Contraction {
  Sizes output_sizes;
  // For a product of two operands: y[batch, m, n] = a[batch, m, k] b[batch, k, n]. All 0 for other equations.
  std::int64_t batch_count = 0;
  std::int64_t m = 0;
  std::int64_t k = 0;
  std::int64_t n = 0;
};
Result<Contraction> parse_contraction(std::string_view equation, const std::vector<const Sizes*>& inputs);

}  // namespace joulemap::predict::onnx
