// SPDX-License-Identifier: Apache-2.0
//
// Translates matrix products, attention, recurrent layers and embeddings.
#include <algorithm>
#include <array>
#include <string>

#include "predict/graph/onnx/to_operations.h"

namespace joulemap::predict::onnx {
namespace {

// A product [m, k] x [k, n], `batch` times.
struct Product {
  std::int64_t batch = 1;
  std::int64_t m = 1;
  std::int64_t k = 1;
  std::int64_t n = 1;
};

Parameters dense(std::int64_t rows, std::int64_t in, std::int64_t out, bool bias) {
  return {{"rows", rows}, {"in", in}, {"out", out}, {"bias", bias ? 1 : 0}};
}

Parameters bmm(const Product& product, bool transposed) {
  Parameters parameters = {{"batch", product.batch}, {"m", product.m}, {"k", product.k}, {"n", product.n}};
  if (transposed) parameters.set("transposed", 1);
  return parameters;
}

bool transposes_last_two(const ProgramStep* step) {
  if (step == nullptr || step->type != "Transpose" || step->outputs.empty()) return false;
  const Sizes order = integers_attribute(*step->node, "perm");
  const std::size_t rank = order.size();
  return rank >= 2 && order[rank - 1] + 2 == static_cast<std::int64_t>(rank) + 0 &&
         order[rank - 2] + 1 == static_cast<std::int64_t>(rank);
}

// A product with a constant factor, on either side, is dense; one of two computed factors, or with a batch of weights
// (`stacked`), is a bmm.
std::vector<Translation> product_of_matrices(const SizedStep& at, const Product& product, bool stacked, bool bias) {
  const bool right = at.input(1).constant;
  const bool left = at.input(0).constant;
  if (right != left && !stacked) {
    const std::int64_t rows = product_of({product.batch, right ? product.m : product.n}, 0, 2);
    return single_translation(Kind::dense, "", dense(rows, product.k, right ? product.n : product.m, bias));
  }
  return single_translation(Kind::bmm, "", bmm(product, transposes_last_two(at.producer(1))));
}

std::vector<Translation> matmul(const SizedStep& at, bool transposed_a, bool transposed_b) {
  Sizes a = at.in(0);
  Sizes b = at.in(1);
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  if (transposed_a) std::swap(a[a.size() - 1], a[a.size() - 2]);
  if (transposed_b) std::swap(b[b.size() - 1], b[b.size() - 2]);
  Product product{.batch = 1, .m = a[a.size() - 2], .k = a.back(), .n = b.back()};
  const std::int64_t left = product_of(a, 0, a.size() - 2);
  const std::int64_t right = product_of(b, 0, b.size() - 2);
  if (right == 1) {
    product.m = product_of({left, product.m}, 0, 2);
  } else {
    const std::int64_t each = product_of({product.m, product.n}, 0, 2);
    product.batch = each == 0 ? 0 : std::max<std::int64_t>(1, elements_of(at.out()) / each);
  }
  const bool weight_is_stacked = (at.input(1).constant && right > 1) || (at.input(0).constant && left > 1);
  return product_of_matrices(at, product, weight_is_stacked, at.has_input(2));
}

std::vector<Translation> attention(const AttentionSizes& sizes) {
  // The mean of the widths of queries and values gives the FLOPs of both products.
  const std::int64_t width = (sizes.width + sizes.value_width + 1) / 2;
  Parameters parameters = {{"batch", sizes.batch},
                           {"heads", sizes.heads},
                           {"queries", sizes.queries},
                           {"keys", sizes.keys},
                           {"width", width}};
  if (sizes.causal) parameters.set("causal", 1);
  return single_translation(Kind::attention, "", std::move(parameters));
}

std::vector<const Sizes*> all_sizes(const SizedStep& at) {
  std::vector<const Sizes*> sizes;
  for (std::size_t position = 0; position < at.count(); ++position)
    sizes.push_back(at.has_input(position) ? &at.in(position) : nullptr);
  return sizes;
}

Translations attention_node(const SizedStep& at) {
  if (at.step.attention) return attention(*at.step.attention);
  const bool weighted = at.step.type == "Attention" && !at.step.node->domain.empty();
  const Result<AttentionSizes> sizes =
      weighted ? weighted_attention_sizes(*at.step.node, all_sizes(at)) : attention_sizes(*at.step.node, all_sizes(at));
  if (!sizes) return std::nullopt;
  std::vector<Translation> translations = attention(*sizes);
  if (weighted) {
    const std::int64_t rows = sizes->batch * sizes->queries;
    translations.insert(
        translations.begin(),
        {.kind = Kind::dense, .form = {}, .parameters = dense(rows, at.in(1)[0], at.in(1)[1], at.has_input(2))});
  }
  return translations;
}

Translations einsum(const SizedStep& at) {
  const Result<Contraction> product = contraction_of(text_attribute(*at.step.node, "equation", ""), all_sizes(at));
  if (!product || product->m == 0 || product->n == 0 || product->k == 0 || product->batch == 0) return std::nullopt;
  const Product sizes{product->batch, product->m, product->k, product->n};
  if (sizes.k == 1 && sizes.batch == elements_of(at.out())) {
    return single_translation(Kind::multiply, "same", tensor_parameters(at.out()));
  }
  return product_of_matrices(at, sizes, sizes.batch > 1, false);
}

// Form of a recurrent node (operation.h) if cuDNN supports its activations; else empty.
std::string recurrent_form(const Node& node) {
  const Attribute* const activations = find_attribute(node, "activations");
  const std::vector<std::string_view> given =
      activations == nullptr ? std::vector<std::string_view>() : activations->texts;
  if (node.type == "RNN") {
    const bool is_relu = !given.empty() && given.front() == "Relu";
    const std::string_view usual = is_relu ? "Relu" : "Tanh";
    const bool is_known = std::ranges::all_of(given, [usual](std::string_view name) { return name == usual; });
    return !is_known ? "" : is_relu ? "rnn_relu" : "rnn_tanh";
  }
  constexpr std::array<std::string_view, 3> kUsual = {"Sigmoid", "Tanh", "Tanh"};
  const std::size_t each = node.type == "LSTM" ? 3 : 2;
  for (std::size_t index = 0; index < given.size(); ++index) {
    if (given[index] != kUsual.at(index % each)) return "";
  }
  return node.type == "LSTM" ? "lstm" : "gru";
}

// One recurrent operation, as one call of cuDNN. With activations that cuDNN does not support: one product for all
// steps, then one product with the state and one kernel for the gates per step.
Translations recurrent(const SizedStep& at) {
  const Sizes& input = at.in(0);
  const Sizes& weight = at.in(1);
  if (at.in(2).size() != 3) return std::nullopt;
  const std::int64_t steps = integer_attribute(*at.step.node, "layout", 0) != 0 ? input[1] : input[0];
  const std::int64_t batch = integer_attribute(*at.step.node, "layout", 0) != 0 ? input[0] : input[1];
  const std::int64_t gates = weight[1];
  const std::int64_t directions = weight[0];
  if (std::string form = recurrent_form(*at.step.node); !form.empty()) {
    return single_translation(Kind::recurrent, form,
                              {{"batch", batch},
                               {"steps", steps},
                               {"in", weight[2]},
                               {"hidden", at.in(2)[2]},
                               {"layers", 1},
                               {"directions", directions},
                               {"bias", at.has_input(3) ? 1 : 0}});
  }
  const std::int64_t turns = product_of({steps, directions}, 0, 2);
  std::vector<Translation> parts;
  parts.push_back({.kind = Kind::dense,
                   .form = {},
                   .parameters = dense(product_of({steps, batch}, 0, 2), weight[2], gates, at.has_input(3)),
                   .count = directions});
  parts.push_back(
      {.kind = Kind::dense, .form = {}, .parameters = dense(batch, at.in(2)[2], gates, false), .count = turns});
  parts.push_back({.kind = Kind::activation,
                   .form = "recurrent",
                   .parameters = {{"batch", batch}, {"rows", 1}, {"width", gates}},
                   .count = turns});
  return parts;
}

// Gather: an embedding if it reads rows of a weight matrix. A single constant index selects a part of a tensor without
// a copy.
Translations gather(const SizedStep& at) {
  const Sizes& data = at.in(0);
  const std::int64_t axis = integer_attribute(*at.step.node, "axis", 0);
  if (at.in(1).empty() || (elements_of(at.in(1)) == 1 && at.input(1).constant)) {
    return single_translation(Kind::view, "", tensor_parameters(at.out()));
  }
  const bool table = at.input(0).constant && data.size() == 2 && axis == 0 && is_floating_point(at.input(0).type);
  if (!table) return single_translation(Kind::reshape, "gather", tensor_parameters(at.out()));
  return single_translation(Kind::embedding, "",
                            {{"vocabulary", data[0]}, {"width", data[1]}, {"tokens", elements_of(at.in(1))}});
}

}  // namespace

Translations translate_product(const SizedStep& at) {
  const std::string_view type = at.step.type;
  const Node& node = *at.step.node;
  const bool transposed_a = integer_attribute(node, "transA", 0) != 0;
  const bool transposed_b = integer_attribute(node, "transB", 0) != 0;
  if (type == "MatMul") return matmul(at, false, false);
  if (type == "Gemm" || type == "FusedGemm" || type == "FusedMatMul") return matmul(at, transposed_a, transposed_b);
  if (type == "Attention" || type == "MultiHeadAttention" || type == "GroupQueryAttention") return attention_node(at);
  if (type == "Einsum") return einsum(at);
  if (type == "LSTM" || type == "GRU" || type == "RNN") return recurrent(at);
  if (type == "Gather") return gather(at);
  return std::nullopt;
}

}  // namespace joulemap::predict::onnx
