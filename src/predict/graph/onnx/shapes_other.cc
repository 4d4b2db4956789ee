// SPDX-License-Identifier: Apache-2.0
//
// Shape inference of attention as one node, recurrent layers, Einsum, and nodes of which only sizes matter.
#include <algorithm>
#include <array>

#include "predict/graph/onnx/contractions.h"
#include "predict/graph/onnx/shapes.h"

namespace joulemap::predict::onnx {
namespace {

std::vector<const Sizes*> all_sizes(const ShapeInference& at) {
  std::vector<const Sizes*> sizes;
  for (const Value* const input : at.inputs) sizes.push_back(input == nullptr ? nullptr : &*input->sizes);
  return sizes;
}

void give_attention(ShapeInference& at, const AttentionSizes& sizes) {
  if (at.input_sizes(0).size() == 4) {
    at.set_output_sizes({sizes.batch, sizes.heads, sizes.queries, sizes.value_width});
  } else {
    at.set_output_sizes({sizes.batch, sizes.queries, product_of({sizes.heads, sizes.value_width}, 0, 2)});
  }
  at.set_output_sizes({sizes.batch, sizes.key_heads, sizes.keys, sizes.width}, 1);
  at.set_output_sizes({sizes.batch, sizes.key_heads, sizes.keys, sizes.value_width}, 2);
  at.set_output_sizes({sizes.batch, sizes.heads, sizes.queries, sizes.keys}, 3);
}

Status attention(ShapeInference& at) {
  const Result<AttentionSizes> sizes = attention_sizes(at.node, all_sizes(at));
  if (!sizes) return sizes.error();
  give_attention(at, *sizes);
  return Done{};
}

Status weighted_attention(ShapeInference& at) {
  const Result<AttentionSizes> sizes = weighted_attention_sizes(at.node, all_sizes(at));
  if (!sizes) return sizes.error();
  give_attention(at, *sizes);
  if (at.outputs.size() > 1) at.set_output_sizes({2, sizes->batch, sizes->heads, sizes->keys, sizes->width}, 1);
  return Done{};
}

Status einsum(ShapeInference& at) {
  Result<Contraction> contraction = contraction_of(text_attribute(at.node, "equation", ""), all_sizes(at));
  if (!contraction) return contraction.error();
  at.set_output_sizes(std::move(contraction->out));
  return Done{};
}

Status recurrent(ShapeInference& at) {
  const Sizes& input = at.input_sizes(0);
  const Sizes& weight = at.input_sizes(1);
  const std::int64_t hidden =
      integer_attribute(at.node, "hidden_size", at.input_sizes(2).empty() ? 0 : at.input_sizes(2).back());
  if (input.size() != 3 || weight.size() != 3 || hidden < 1)
    return invalid_node("a recurrent layer with incompatible sizes");
  const bool batch_first = integer_attribute(at.node, "layout", 0) != 0;
  const std::int64_t steps = batch_first ? input[1] : input[0];
  const std::int64_t batch = batch_first ? input[0] : input[1];
  const std::int64_t directions = weight[0];
  at.set_output_sizes(batch_first ? Sizes{batch, steps, directions, hidden} : Sizes{steps, directions, batch, hidden});
  for (const std::size_t position : {std::size_t{1}, std::size_t{2}}) {
    at.set_output_sizes(batch_first ? Sizes{batch, directions, hidden} : Sizes{directions, batch, hidden}, position);
  }
  return Done{};
}

Status as_first(ShapeInference& at) {
  at.set_output_sizes(at.input_sizes(0));
  return Done{};
}

Status roi_align(ShapeInference& at) {
  const Sizes& image = at.input_sizes(0);
  if (image.size() != 4 || at.input_sizes(1).empty()) return invalid_node("regions with incompatible sizes");
  at.set_output_sizes({at.input_sizes(1)[0], image[1], integer_attribute(at.node, "output_height", 1),
                       integer_attribute(at.node, "output_width", 1)});
  return Done{};
}

constexpr std::string_view kMicrosoft = "com.microsoft";
constexpr std::array kNodes = {
    NodeRule{"Attention", attention, 3},
    NodeRule{"RotaryEmbedding", as_first, 3},
    NodeRule{"Einsum", einsum, 1},
    NodeRule{"LSTM", recurrent, 3},
    NodeRule{"GRU", recurrent, 3},
    NodeRule{"RNN", recurrent, 3},
    NodeRule{"RoiAlign", roi_align, 3},
    NodeRule{"Attention", weighted_attention, 2, kMicrosoft},
    NodeRule{"MultiHeadAttention", attention, 1, kMicrosoft},
    NodeRule{"GroupQueryAttention", attention, 1, kMicrosoft},
    NodeRule{"RotaryEmbedding", as_first, 2, kMicrosoft},
};

}  // namespace

const NodeRule* find_other_rule(std::string_view type, std::string_view domain) {
  const auto found = std::find_if(kNodes.begin(), kNodes.end(),
                                  [=](const NodeRule& node) { return node.type == type && node.domain == domain; });
  return found == kNodes.end() ? nullptr : &*found;
}

}  // namespace joulemap::predict::onnx
