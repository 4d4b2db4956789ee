// SPDX-License-Identifier: Apache-2.0
//
// Translates matrix products, attention, recurrent layers and embeddings.
#include <algorithm>
#include <array>
#include <string>

#include "predict/graph/onnx/to_operations.h"

namespace joulemap::predict::onnx {
namespace {

// A product [m, k] x [k, n], `batch_count` times.
struct BatchedProductSizes {
  std::int64_t batch_count = 1;
  std::int64_t m = 1;
  std::int64_t k = 1;
  std::int64_t n = 1;
};

OperationParameters make_dense_translation(std::int64_t rows, std::int64_t in, std::int64_t out, bool bias) {
  return {{"rows", rows}, {"in", in}, {"out", out}, {"bias", bias ? 1 : 0}};
}

OperationParameters make_bmm_translation(const BatchedProductSizes& product, bool is_transposed) {
  OperationParameters parameters = {
      {"batch", product.batch_count}, {"m", product.m}, {"k", product.k}, {"n", product.n}};
  if (is_transposed) parameters.set("transposed", 1);
  return parameters;
}

bool is_transpose_of_last_axes(const ProgramStep* step) {
  if (step == nullptr || step->type != "Transpose" || step->outputs.empty()) return false;
  const Sizes order = integers_attribute(*step->node, "perm");
  const std::size_t rank = order.size();
  return rank >= 2 && order[rank - 1] + 2 == static_cast<std::int64_t>(rank) + 0 &&
         order[rank - 2] + 1 == static_cast<std::int64_t>(rank);
}

// If one factor is a constant, the product is a dense layer. If both are computed, or if the constant is a batch of
// weights (`has_stacked_weights`), it is a batched matrix product (bmm).
std::vector<TranslatedOperation> make_product_translation(const SizedStep& sized_step,
                                                          const BatchedProductSizes& product, bool has_stacked_weights,
                                                          bool bias) {
  const bool is_right_constant = sized_step.input_value(1).is_constant;
  const bool is_left_constant = sized_step.input_value(0).is_constant;
  if (is_right_constant != is_left_constant && !has_stacked_weights) {
    const std::int64_t rows = product_of_sizes({product.batch_count, is_right_constant ? product.m : product.n}, 0, 2);
    return make_single_operation(
        Kind::dense, "", make_dense_translation(rows, product.k, is_right_constant ? product.n : product.m, bias));
  }
  return make_single_operation(Kind::bmm, "",
                               make_bmm_translation(product, is_transpose_of_last_axes(sized_step.producer(1))));
}

std::vector<TranslatedOperation> translate_matmul(const SizedStep& sized_step, bool transposed_a, bool transposed_b) {
  Sizes left_sizes = sized_step.input_sizes(0);
  Sizes right_sizes = sized_step.input_sizes(1);
  if (left_sizes.size() == 1) left_sizes.insert(left_sizes.begin(), 1);
  if (right_sizes.size() == 1) right_sizes.push_back(1);
  if (transposed_a) std::swap(left_sizes[left_sizes.size() - 1], left_sizes[left_sizes.size() - 2]);
  if (transposed_b) std::swap(right_sizes[right_sizes.size() - 1], right_sizes[right_sizes.size() - 2]);
  BatchedProductSizes product{
      .batch_count = 1, .m = left_sizes[left_sizes.size() - 2], .k = left_sizes.back(), .n = right_sizes.back()};
  const std::int64_t left_batch_count = product_of_sizes(left_sizes, 0, left_sizes.size() - 2);
  const std::int64_t right_batch_count = product_of_sizes(right_sizes, 0, right_sizes.size() - 2);
  if (right_batch_count == 1) {
    product.m = product_of_sizes({left_batch_count, product.m}, 0, 2);
  } else {
    const std::int64_t elements_per_product = product_of_sizes({product.m, product.n}, 0, 2);
    product.batch_count =
        elements_per_product == 0
            ? 0
            : std::max<std::int64_t>(1, onnx_element_count(sized_step.output_sizes()) / elements_per_product);
  }
  const bool is_weight_stacked = (sized_step.input_value(1).is_constant && right_batch_count > 1) ||
                                 (sized_step.input_value(0).is_constant && left_batch_count > 1);
  return make_product_translation(sized_step, product, is_weight_stacked, sized_step.has_input(2));
}

std::vector<TranslatedOperation> make_attention_translation(const AttentionSizes& sizes) {
  // The mean of the widths of queries and values gives the FLOPs of both products.
  const std::int64_t width = (sizes.width_per_head + sizes.value_width_per_head + 1) / 2;
  OperationParameters parameters = {{"batch", sizes.batch_size},
                                    {"heads", sizes.head_count},
                                    {"queries", sizes.query_count},
                                    {"keys", sizes.key_count},
                                    {"width", width}};
  if (sizes.is_causal) parameters.set("causal", 1);
  return make_single_operation(Kind::attention, "", std::move(parameters));
}

std::vector<const Sizes*> all_input_sizes(const SizedStep& sized_step) {
  std::vector<const Sizes*> sizes;
  for (std::size_t position = 0; position < sized_step.input_count(); ++position)
    sizes.push_back(sized_step.has_input(position) ? &sized_step.input_sizes(position) : nullptr);
  return sizes;
}

Translations translate_attention_node(const SizedStep& sized_step) {
  if (sized_step.step.attention_sizes) return make_attention_translation(*sized_step.step.attention_sizes);
  const bool weighted = sized_step.step.type == "Attention" && !sized_step.step.node->operator_domain.empty();
  const Result<AttentionSizes> sizes =
      weighted ? weighted_attention_sizes(*sized_step.step.node, all_input_sizes(sized_step))
               : attention_sizes(*sized_step.step.node, all_input_sizes(sized_step));
  if (!sizes) return std::nullopt;
  std::vector<TranslatedOperation> translations = make_attention_translation(*sizes);
  if (weighted) {
    const std::int64_t rows = sizes->batch_size * sizes->query_count;
    translations.insert(translations.begin(),
                        {.kind = Kind::dense,
                         .form = {},
                         .parameters = make_dense_translation(rows, sized_step.input_sizes(1)[0],
                                                              sized_step.input_sizes(1)[1], sized_step.has_input(2))});
  }
  return translations;
}

Translations translate_einsum(const SizedStep& sized_step) {
  const Result<Contraction> product =
      parse_contraction(text_attribute(*sized_step.step.node, "equation", ""), all_input_sizes(sized_step));
  if (!product || product->m == 0 || product->n == 0 || product->k == 0 || product->batch_count == 0)
    return std::nullopt;
  const BatchedProductSizes sizes{product->batch_count, product->m, product->k, product->n};
  if (sizes.k == 1 && sizes.batch_count == onnx_element_count(sized_step.output_sizes())) {
    return make_single_operation(Kind::multiply, "same", tensor_parameters(sized_step.output_sizes()));
  }
  return make_product_translation(sized_step, sizes, sizes.batch_count > 1, false);
}

// Form of a recurrent node (operation.h) if cuDNN supports its activations; else empty.
std::string recurrent_form_of_node(const Node& node) {
  const Attribute* const activations = find_attribute(node, "activations");
  const std::vector<std::string_view> activation_names =
      activations == nullptr ? std::vector<std::string_view>() : activations->texts;
  if (node.operator_type == "RNN") {
    const bool is_relu = !activation_names.empty() && activation_names.front() == "Relu";
    const std::string_view expected_activation = is_relu ? "Relu" : "Tanh";
    const bool is_known = std::ranges::all_of(
        activation_names, [expected_activation](std::string_view name) { return name == expected_activation; });
    return !is_known ? "" : is_relu ? "rnn_relu" : "rnn_tanh";
  }
  constexpr std::array<std::string_view, 3> kDefaultActivations = {"Sigmoid", "Tanh", "Tanh"};
  const std::size_t activations_per_direction = node.operator_type == "LSTM" ? 3 : 2;
  for (std::size_t index = 0; index < activation_names.size(); ++index) {
    if (activation_names[index] != kDefaultActivations.at(index % activations_per_direction)) return "";
  }
  return node.operator_type == "LSTM" ? "lstm" : "gru";
}

// One recurrent operation, as one call of cuDNN. With activations that cuDNN does not support: one product for all
// steps, then one product with the state and one kernel for the gates per step.
Translations translate_recurrent(const SizedStep& sized_step) {
  const Sizes& input = sized_step.input_sizes(0);
  const Sizes& weight = sized_step.input_sizes(1);
  if (sized_step.input_sizes(2).size() != 3) return std::nullopt;
  const std::int64_t steps = integer_attribute(*sized_step.step.node, "layout", 0) != 0 ? input[1] : input[0];
  const std::int64_t batch = integer_attribute(*sized_step.step.node, "layout", 0) != 0 ? input[0] : input[1];
  const std::int64_t gate_width = weight[1];
  const std::int64_t directions = weight[0];
  if (std::string recurrent_form = recurrent_form_of_node(*sized_step.step.node); !recurrent_form.empty()) {
    return make_single_operation(Kind::recurrent, recurrent_form,
                                 {{"batch", batch},
                                  {"steps", steps},
                                  {"in", weight[2]},
                                  {"hidden", sized_step.input_sizes(2)[2]},
                                  {"layers", 1},
                                  {"directions", directions},
                                  {"bias", sized_step.has_input(3) ? 1 : 0}});
  }
  const std::int64_t step_count = product_of_sizes({steps, directions}, 0, 2);
  std::vector<TranslatedOperation> parts;
  parts.push_back({.kind = Kind::dense,
                   .form = {},
                   .parameters = make_dense_translation(product_of_sizes({steps, batch}, 0, 2), weight[2], gate_width,
                                                        sized_step.has_input(3)),
                   .repeat_count = directions});
  parts.push_back({.kind = Kind::dense,
                   .form = {},
                   .parameters = make_dense_translation(batch, sized_step.input_sizes(2)[2], gate_width, false),
                   .repeat_count = step_count});
  parts.push_back({.kind = Kind::activation,
                   .form = "recurrent",
                   .parameters = {{"batch", batch}, {"rows", 1}, {"width", gate_width}},
                   .repeat_count = step_count});
  return parts;
}

// Gather: an embedding if it reads rows of a weight matrix. A single constant index selects a part of a tensor without
// a copy.
Translations translate_gather(const SizedStep& sized_step) {
  const Sizes& data = sized_step.input_sizes(0);
  const std::int64_t axis = integer_attribute(*sized_step.step.node, "axis", 0);
  if (sized_step.input_sizes(1).empty() ||
      (onnx_element_count(sized_step.input_sizes(1)) == 1 && sized_step.input_value(1).is_constant)) {
    return make_single_operation(Kind::view, "", tensor_parameters(sized_step.output_sizes()));
  }
  const bool table = sized_step.input_value(0).is_constant && data.size() == 2 && axis == 0 &&
                     is_floating_point(sized_step.input_value(0).type);
  if (!table) return make_single_operation(Kind::reshape, "gather", tensor_parameters(sized_step.output_sizes()));
  return make_single_operation(
      Kind::embedding, "",
      {{"vocabulary", data[0]}, {"width", data[1]}, {"tokens", onnx_element_count(sized_step.input_sizes(1))}});
}

}  // namespace

Translations translate_product_node(const SizedStep& sized_step) {
  const std::string_view type = sized_step.step.type;
  const Node& node = *sized_step.step.node;
  const bool transposed_a = integer_attribute(node, "transA", 0) != 0;
  const bool transposed_b = integer_attribute(node, "transB", 0) != 0;
  if (type == "MatMul") return translate_matmul(sized_step, false, false);
  if (type == "Gemm" || type == "FusedGemm" || type == "FusedMatMul")
    return translate_matmul(sized_step, transposed_a, transposed_b);
  if (type == "Attention" || type == "MultiHeadAttention" || type == "GroupQueryAttention")
    return translate_attention_node(sized_step);
  if (type == "Einsum") return translate_einsum(sized_step);
  if (type == "LSTM" || type == "GRU" || type == "RNN") return translate_recurrent(sized_step);
  if (type == "Gather") return translate_gather(sized_step);
  return std::nullopt;
}

}  // namespace joulemap::predict::onnx
