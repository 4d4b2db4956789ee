// SPDX-License-Identifier: Apache-2.0
//
// Shape inference of attention as one node, recurrent layers, Einsum, and nodes of which only sizes matter.
#include <algorithm>
#include <array>

#include "predict/graph/onnx/contractions.h"
#include "predict/graph/onnx/shapes.h"

namespace joulemap::predict::onnx {
namespace {

std::vector<const Sizes*> optional_input_sizes(const ShapeInference& shape_inference) {
  std::vector<const Sizes*> sizes;
  for (const Value* const input : shape_inference.inputs) sizes.push_back(input == nullptr ? nullptr : &*input->sizes);
  return sizes;
}

void set_attention_output_sizes(ShapeInference& shape_inference, const AttentionSizes& sizes) {
  if (shape_inference.input_sizes(0).size() == 4) {
    shape_inference.set_output_sizes(
        {sizes.batch_size, sizes.head_count, sizes.query_count, sizes.value_width_per_head});
  } else {
    shape_inference.set_output_sizes(
        {sizes.batch_size, sizes.query_count, product_of_sizes({sizes.head_count, sizes.value_width_per_head}, 0, 2)});
  }
  shape_inference.set_output_sizes({sizes.batch_size, sizes.key_head_count, sizes.key_count, sizes.width_per_head}, 1);
  shape_inference.set_output_sizes(
      {sizes.batch_size, sizes.key_head_count, sizes.key_count, sizes.value_width_per_head}, 2);
  shape_inference.set_output_sizes({sizes.batch_size, sizes.head_count, sizes.query_count, sizes.key_count}, 3);
}

Status infer_attention(ShapeInference& shape_inference) {
  const Result<AttentionSizes> sizes = attention_sizes(shape_inference.node, optional_input_sizes(shape_inference));
  if (!sizes) return sizes.error();
  set_attention_output_sizes(shape_inference, *sizes);
  return Done{};
}

Status infer_weighted_attention(ShapeInference& shape_inference) {
  const Result<AttentionSizes> sizes =
      weighted_attention_sizes(shape_inference.node, optional_input_sizes(shape_inference));
  if (!sizes) return sizes.error();
  set_attention_output_sizes(shape_inference, *sizes);
  if (shape_inference.outputs.size() > 1)
    shape_inference.set_output_sizes({2, sizes->batch_size, sizes->head_count, sizes->key_count, sizes->width_per_head},
                                     1);
  return Done{};
}

Status infer_einsum(ShapeInference& shape_inference) {
  Result<Contraction> contraction =
      parse_contraction(text_attribute(shape_inference.node, "equation", ""), optional_input_sizes(shape_inference));
  if (!contraction) return contraction.error();
  shape_inference.set_output_sizes(std::move(contraction->output_sizes));
  return Done{};
}

Status infer_recurrent(ShapeInference& shape_inference) {
  const Sizes& input = shape_inference.input_sizes(0);
  const Sizes& weight = shape_inference.input_sizes(1);
  const std::int64_t hidden_size =
      integer_attribute(shape_inference.node, "hidden_size",
                        shape_inference.input_sizes(2).empty() ? 0 : shape_inference.input_sizes(2).back());
  if (input.size() != 3 || weight.size() != 3 || hidden_size < 1)
    return invalid_node("a recurrent layer with incompatible sizes");
  const bool batch_first = integer_attribute(shape_inference.node, "layout", 0) != 0;
  const std::int64_t steps = batch_first ? input[1] : input[0];
  const std::int64_t batch = batch_first ? input[0] : input[1];
  const std::int64_t directions = weight[0];
  shape_inference.set_output_sizes(batch_first ? Sizes{batch, steps, directions, hidden_size}
                                               : Sizes{steps, directions, batch, hidden_size});
  for (const std::size_t position : {std::size_t{1}, std::size_t{2}}) {
    shape_inference.set_output_sizes(
        batch_first ? Sizes{batch, directions, hidden_size} : Sizes{directions, batch, hidden_size}, position);
  }
  return Done{};
}

Status infer_like_first_input(ShapeInference& shape_inference) {
  shape_inference.set_output_sizes(shape_inference.input_sizes(0));
  return Done{};
}

Status infer_roi_align(ShapeInference& shape_inference) {
  const Sizes& image = shape_inference.input_sizes(0);
  if (image.size() != 4 || shape_inference.input_sizes(1).empty())
    return invalid_node("regions with incompatible sizes");
  shape_inference.set_output_sizes({shape_inference.input_sizes(1)[0], image[1],
                                    integer_attribute(shape_inference.node, "output_height", 1),
                                    integer_attribute(shape_inference.node, "output_width", 1)});
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
  const auto matching_rule =
      std::find_if(kMiscellaneousNodeRules.begin(), kMiscellaneousNodeRules.end(),
                   [=](const NodeRule& node) { return node.type == type && node.domain == domain; });
  return matching_rule == kMiscellaneousNodeRules.end() ? nullptr : &*matching_rule;
}

}  // namespace joulemap::predict::onnx
