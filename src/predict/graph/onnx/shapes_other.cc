// SPDX-License-Identifier: Apache-2.0
//
// Shape inference of attention as one node, recurrent layers, Einsum, and nodes of which only sizes matter.
#include <algorithm>
#include <array>

#include "predict/graph/onnx/contractions.h"
#include "predict/graph/onnx/shapes.h"

namespace joulemap::predict::onnx {
namespace {

std::vector<const Sizes*> optional_input_sizes(const ShapeInference& at) {
  std::vector<const Sizes*> sizes;
  for (const Value* const input : at.inputs) sizes.push_back(input == nullptr ? nullptr : &*input->sizes);
  return sizes;
}

void set_attention_output_sizes(ShapeInference& at, const AttentionSizes& sizes) {
  if (at.input_sizes(0).size() == 4) {
    at.set_output_sizes({sizes.batch_size, sizes.head_count, sizes.query_count, sizes.value_width_per_head});
  } else {
    at.set_output_sizes(
        {sizes.batch_size, sizes.query_count, product_of_sizes({sizes.head_count, sizes.value_width_per_head}, 0, 2)});
  }
  at.set_output_sizes({sizes.batch_size, sizes.key_head_count, sizes.key_count, sizes.width_per_head}, 1);
  at.set_output_sizes({sizes.batch_size, sizes.key_head_count, sizes.key_count, sizes.value_width_per_head}, 2);
  at.set_output_sizes({sizes.batch_size, sizes.head_count, sizes.query_count, sizes.key_count}, 3);
}

Status infer_attention(ShapeInference& at) {
  const Result<AttentionSizes> sizes = attention_sizes(at.node, optional_input_sizes(at));
  if (!sizes) return sizes.error();
  set_attention_output_sizes(at, *sizes);
  return Done{};
}

Status infer_weighted_attention(ShapeInference& at) {
  const Result<AttentionSizes> sizes = weighted_attention_sizes(at.node, optional_input_sizes(at));
  if (!sizes) return sizes.error();
  set_attention_output_sizes(at, *sizes);
  if (at.outputs.size() > 1)
    at.set_output_sizes({2, sizes->batch_size, sizes->head_count, sizes->key_count, sizes->width_per_head}, 1);
  return Done{};
}

Status infer_einsum(ShapeInference& at) {
  Result<Contraction> contraction =
      parse_contraction(text_attribute(at.node, "equation", ""), optional_input_sizes(at));
  if (!contraction) return contraction.error();
  at.set_output_sizes(std::move(contraction->output_sizes));
  return Done{};
}

Status infer_recurrent(ShapeInference& at) {
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

Status infer_like_first_input(ShapeInference& at) {
  at.set_output_sizes(at.input_sizes(0));
  return Done{};
}

Status infer_roi_align(ShapeInference& at) {
  const Sizes& image = at.input_sizes(0);
  if (image.size() != 4 || at.input_sizes(1).empty()) return invalid_node("regions with incompatible sizes");
  at.set_output_sizes({at.input_sizes(1)[0], image[1], integer_attribute(at.node, "output_height", 1),
                       integer_attribute(at.node, "output_width", 1)});
  return Done{};
}

constexpr std::string_view kMicrosoftDomain = "com.microsoft";
constexpr std::array kMiscellaneousNodeRules = {
    NodeRule{"Attention", infer_attention, 3},
    NodeRule{"RotaryEmbedding", infer_like_first_input, 3},
    NodeRule{"Einsum", infer_einsum, 1},
    NodeRule{"LSTM", infer_recurrent, 3},
    NodeRule{"GRU", infer_recurrent, 3},
    NodeRule{"RNN", infer_recurrent, 3},
    NodeRule{"RoiAlign", infer_roi_align, 3},
    NodeRule{"Attention", infer_weighted_attention, 2, kMicrosoftDomain},
    NodeRule{"MultiHeadAttention", infer_attention, 1, kMicrosoftDomain},
    NodeRule{"GroupQueryAttention", infer_attention, 1, kMicrosoftDomain},
    NodeRule{"RotaryEmbedding", infer_like_first_input, 2, kMicrosoftDomain},
};

}  // namespace

const NodeRule* find_miscellaneous_node_rule(std::string_view type, std::string_view domain) {
  const auto found = std::find_if(kMiscellaneousNodeRules.begin(), kMiscellaneousNodeRules.end(),
                                  [=](const NodeRule& node) { return node.type == type && node.domain == domain; });
  return found == kMiscellaneousNodeRules.end() ? nullptr : &*found;
}

}  // namespace joulemap::predict::onnx
