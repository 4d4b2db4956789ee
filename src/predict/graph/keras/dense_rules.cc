// SPDX-License-Identifier: Apache-2.0
//
// Matrix products: with weights (Dense, EinsumDense, Embedding), and of two tensors (Dot, matmul, einsum).
#include <fmt/format.h>

#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {

void emit_dense(LayerCall& call, std::int64_t rows, std::int64_t in, std::int64_t out, bool has_bias,
                std::int64_t count) {
  call.count_weights({saturating_product(in, out), has_bias ? out : 0});
  call.emit_operation(Kind::dense, "", {{"rows", rows}, {"in", in}, {"out", out}, {"bias", has_bias}}, count);
}

namespace {

std::vector<Shape> apply_dense(LayerCall& call) {
  call.require_dimension_count(1, kMaxTensorDimensions);
  Shape out = call.input_shape();
  const std::int64_t in = call.input_dimension(-1);
  if (out.empty()) out = {1};
  out.back() = call.required_size_option("units");
  emit_dense(call, element_count(out, 0, out.size() - 1), in, out.back(), call.boolean_option("use_bias", true));
  call.emit_activation(call.text_option("activation"), out);
  return {std::move(out)};
}

std::vector<Shape> apply_embedding(LayerCall& call) {
  Shape out = call.input_shape();
  const std::int64_t vocabulary = call.required_size_option("input_dim");
  const std::int64_t width = call.required_size_option("output_dim");
  const std::int64_t tokens = element_count(out);
  out.push_back(width);
  call.count_weights({saturating_product(vocabulary, width)});
  call.emit_operation(Kind::embedding, "", {{"vocabulary", vocabulary}, {"width", width}, {"tokens", tokens}});
  return {std::move(out)};
}

bool has_letter(std::string_view letters, char letter) { return letters.find(letter) != std::string_view::npos; }

std::int64_t dimension_of_letter(const ParsedEinsum& einsum, char letter) {
  for (const auto& [known_letter, size] : einsum.size_by_letter) {
    if (known_letter == letter) return size;
  }
  return 0;  // no size yet
}

// Sizes of an einsum of two operands as a matrix product. batch: letters in both operands and the result; k: in both
// operands only; m and n: in the first or second operand only.
struct EinsumProduct {
  std::int64_t batch = 1;
  std::int64_t m = 1;
  std::int64_t k = 1;
  std::int64_t n = 1;
  Shape output_shape;
};

EinsumProduct to_matrix_product(const ParsedEinsum& einsum) {
  EinsumProduct product;
  const std::string& left_letters = einsum.operand_letters.front();
  const std::string& right_letters = einsum.operand_letters.back();
  for (const auto& [letter, size] : einsum.size_by_letter) {
    std::int64_t& part = has_letter(left_letters, letter) && has_letter(right_letters, letter)
                             ? (has_letter(einsum.output_letters, letter) ? product.batch : product.k)
                         : has_letter(left_letters, letter) ? product.m
                                                            : product.n;
    part = saturating_product(part, size);
  }
  for (const char letter : einsum.output_letters)
    product.output_shape.push_back(std::max<std::int64_t>(1, dimension_of_letter(einsum, letter)));
  return product;
}

std::vector<Shape> apply_einsum_dense(LayerCall& call) {
  const Shape input_shape = call.input_shape();
  ParsedEinsum einsum = parse_einsum(call, call.text_option("equation"), {input_shape});
  if (call.failure() || einsum.operand_letters.size() != 2) {
    call.set_failure("its equation does not combine one tensor with its weights");
    return {input_shape};
  }
  // Letters that the input does not have get their sizes from output_shape, which may omit the batch.
  const DocumentValue* const output_shape_option = call.find_option("output_shape");
  Shape sizes;
  if (output_shape_option != nullptr && output_shape_option->array() != nullptr) {
    for (const DocumentValue& size_json : *output_shape_option->array())
      sizes.push_back(size_json.integer().value_or(0));
  } else if (output_shape_option != nullptr) {
    sizes.push_back(output_shape_option->integer().value_or(0));
  }
  for (std::size_t i = 0; i < std::min(sizes.size(), einsum.output_letters.size()); ++i) {
    const char letter = einsum.output_letters[einsum.output_letters.size() - 1 - i];
    const std::int64_t size = sizes[sizes.size() - 1 - i];
    if (dimension_of_letter(einsum, letter) == 0 && size > 0)
      einsum.size_by_letter.emplace_back(letter, std::min(size, kSaturatedElementCount));
  }
  std::int64_t kernel = 1;
  for (const char letter : einsum.operand_letters.back()) {
    if (dimension_of_letter(einsum, letter) == 0)
      call.set_failure("its output_shape does not define the size of its weights");
    kernel = saturating_product(kernel, std::max<std::int64_t>(1, dimension_of_letter(einsum, letter)));
  }
  std::int64_t bias = call.text_option("bias_axes").empty() ? 0 : 1;
  for (const char letter : call.text_option("bias_axes"))
    bias = saturating_product(bias, std::max<std::int64_t>(1, dimension_of_letter(einsum, letter)));
  const EinsumProduct product = to_matrix_product(einsum);
  call.count_weights({kernel, bias});
  call.emit_operation(Kind::dense, "", {{"rows", product.m}, {"in", product.k}, {"out", product.n}, {"bias", bias > 0}},
                      std::min(product.batch, kMaxElements));
  call.emit_activation(call.text_option("activation"), product.output_shape);
  return {product.output_shape};
}

void emit_bmm(LayerCall& call, const EinsumProduct& product, bool is_transposed) {
  OperationParameters parameters{{"batch", product.batch}, {"m", product.m}, {"k", product.k}, {"n", product.n}};
  if (is_transposed) parameters.set("transposed", 1);
  call.emit_operation(Kind::bmm, "", std::move(parameters));
}

std::vector<Shape> apply_einsum(LayerCall& call) {
  std::vector<Shape> shapes;
  for (const Input& input : call.inputs) shapes.push_back(input.tensor.sizes);
  const std::string equation =
      call.text_option("subscripts").empty() ? call.text_option("equation") : call.text_option("subscripts");
  const ParsedEinsum einsum = parse_einsum(call, equation, shapes);
  if (call.failure() || einsum.operand_letters.size() != shapes.size() || shapes.size() != 2) {
    call.set_failure("its equation does not combine two tensors");
    return {call.input_shape()};
  }
  const EinsumProduct product = to_matrix_product(einsum);
  emit_bmm(call, product, false);
  return {product.output_shape};
}

std::vector<Shape> apply_matmul(LayerCall& call) {
  Shape left_shape = call.input_shape(0);
  Shape right_shape = call.input_shape(1);
  if (left_shape.size() < 2 || right_shape.size() < 2) {
    call.set_failure(
        fmt::format("{} and {} cannot be multiplied as matrices", shape_text(left_shape), shape_text(right_shape)));
    return {left_shape};
  }
  const bool transposes = call.boolean_option("transpose_b", false);
  if (call.boolean_option("transpose_a", false))
    std::swap(left_shape[left_shape.size() - 1], left_shape[left_shape.size() - 2]);
  if (transposes) std::swap(right_shape[right_shape.size() - 1], right_shape[right_shape.size() - 2]);
  EinsumProduct product;
  product.m = left_shape[left_shape.size() - 2];
  product.k = left_shape.back();
  product.n = right_shape.back();
  if (right_shape[right_shape.size() - 2] != product.k)
    call.set_failure(fmt::format("{} is incompatible with {}", shape_text(left_shape), shape_text(right_shape)));
  const std::optional<Shape> batches = broadcast_shapes(Shape(left_shape.begin(), left_shape.end() - 2),
                                                        Shape(right_shape.begin(), right_shape.end() - 2));
  if (!batches)
    call.set_failure(fmt::format("{} is incompatible with {}", shape_text(left_shape), shape_text(right_shape)));
  product.output_shape = batches.value_or(Shape{});
  product.batch = element_count(product.output_shape);
  product.output_shape.push_back(product.m);
  product.output_shape.push_back(product.n);
  emit_bmm(call, product, transposes);
  return {product.output_shape};
}

// The Dot layer: contracts one axis of each input. The result is the batch, the other axes of the first input, then
// those of the second.
std::vector<Shape> apply_dot(LayerCall& call) {
  const Shape left_shape = call.input_shape(0);
  const Shape right_shape = call.input_shape(1);
  std::vector<std::int64_t> axes = call.axes_option("axes");
  if (axes.size() == 1) axes.push_back(axes.front());
  if (axes.size() != 2) call.set_failure("its axes are missing");
  if (call.failure()) return {left_shape};
  const std::size_t left_axis = call.normalize_axis(axes[0], left_shape.size());
  const std::size_t right_axis = call.normalize_axis(axes[1], right_shape.size());
  if (call.failure() || left_axis == 0 || right_axis == 0 || left_shape[left_axis] != right_shape[right_axis]) {
    call.set_failure(
        fmt::format("{} is incompatible with {} along its axes", shape_text(left_shape), shape_text(right_shape)));
    return {left_shape};
  }
  EinsumProduct product;
  product.batch = left_shape.front();
  product.k = left_shape[left_axis];
  product.m = element_count(left_shape) / left_shape.front() / product.k;
  product.n = element_count(right_shape) / right_shape.front() / product.k;
  product.output_shape = {left_shape.front()};
  for (std::size_t i = 1; i < left_shape.size(); ++i) {
    if (i != left_axis) product.output_shape.push_back(left_shape[i]);
  }
  for (std::size_t i = 1; i < right_shape.size(); ++i) {
    if (i != right_axis) product.output_shape.push_back(right_shape[i]);
  }
  if (product.output_shape.size() == 1) product.output_shape.push_back(1);
  emit_bmm(call, product, false);
  return {product.output_shape};
}

constexpr LayerClassRule kDenseLayerRules[] = {
    {"Dense", apply_dense},         {"EinsumDense", apply_einsum_dense},
    {"Embedding", apply_embedding}, {"Dot", apply_dot},
    {"matmul", apply_matmul},       {"batchmatmulv2", apply_matmul},
    {"batchmatmul", apply_matmul},  {"einsum", apply_einsum},
};

}  // namespace

std::span<const LayerClassRule> dense_rules() { return kDenseLayerRules; }

}  // namespace joulemap::predict::keras
