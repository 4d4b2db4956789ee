// SPDX-License-Identifier: Apache-2.0
//
// Matrix products: with weights (Dense, EinsumDense, Embedding), and of two tensors (Dot, matmul, einsum).
#include <fmt/format.h>

#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {

void emit_dense(LayerCall& call, std::int64_t rows, std::int64_t in, std::int64_t out, bool has_bias,
                std::int64_t count) {
  call.weights({saturating_product(in, out), has_bias ? out : 0});
  call.emit(Kind::dense, "", {{"rows", rows}, {"in", in}, {"out", out}, {"bias", has_bias}}, count);
}

namespace {

std::vector<Shape> dense(LayerCall& call) {
  call.need_dimensions(1, kMaxDimensions);
  Shape out = call.shape();
  const std::int64_t in = call.dimension(-1);
  if (out.empty()) out = {1};
  out.back() = call.size("units");
  emit_dense(call, elements(out, 0, out.size() - 1), in, out.back(), call.flag("use_bias", true));
  call.activation(call.word("activation"), out);
  return {std::move(out)};
}

std::vector<Shape> embedding(LayerCall& call) {
  Shape out = call.shape();
  const std::int64_t vocabulary = call.size("input_dim");
  const std::int64_t width = call.size("output_dim");
  const std::int64_t tokens = elements(out);
  out.push_back(width);
  call.weights({saturating_product(vocabulary, width)});
  call.emit(Kind::embedding, "", {{"vocabulary", vocabulary}, {"width", width}, {"tokens", tokens}});
  return {std::move(out)};
}

bool has(std::string_view letters, char letter) { return letters.find(letter) != std::string_view::npos; }

std::int64_t size_of(const Einsum& einsum, char letter) {
  for (const auto& [known, size] : einsum.sizes) {
    if (known == letter) return size;
  }
  return 0;  // no size yet
}

// Sizes of an einsum of two operands as a matrix product. batch: letters in both operands and the result; k: in both
// operands only; m and n: in the first or second operand only.
struct Product {
  std::int64_t batch = 1;
  std::int64_t m = 1;
  std::int64_t k = 1;
  std::int64_t n = 1;
  Shape out;
};

Product product_of(const Einsum& einsum) {
  Product product;
  const std::string& one = einsum.operands.front();
  const std::string& other = einsum.operands.back();
  for (const auto& [letter, size] : einsum.sizes) {
    std::int64_t& part = has(one, letter) && has(other, letter) ? (has(einsum.out, letter) ? product.batch : product.k)
                         : has(one, letter)                     ? product.m
                                                                : product.n;
    part = saturating_product(part, size);
  }
  for (const char letter : einsum.out) product.out.push_back(std::max<std::int64_t>(1, size_of(einsum, letter)));
  return product;
}

std::vector<Shape> einsum_dense(LayerCall& call) {
  const Shape in = call.shape();
  Einsum einsum = read_einsum(call, call.word("equation"), {in});
  if (call.failure() || einsum.operands.size() != 2) {
    call.fail("its equation does not combine one tensor with its weights");
    return {in};
  }
  // Letters that the input does not have get their sizes from output_shape, which may omit the batch.
  const DocumentValue* const wanted = call.option("output_shape");
  Shape sizes;
  if (wanted != nullptr && wanted->array() != nullptr) {
    for (const DocumentValue& each : *wanted->array()) sizes.push_back(each.integer().value_or(0));
  } else if (wanted != nullptr) {
    sizes.push_back(wanted->integer().value_or(0));
  }
  for (std::size_t i = 0; i < std::min(sizes.size(), einsum.out.size()); ++i) {
    const char letter = einsum.out[einsum.out.size() - 1 - i];
    const std::int64_t size = sizes[sizes.size() - 1 - i];
    if (size_of(einsum, letter) == 0 && size > 0) einsum.sizes.emplace_back(letter, std::min(size, kSaturatedCount));
  }
  std::int64_t kernel = 1;
  for (const char letter : einsum.operands.back()) {
    if (size_of(einsum, letter) == 0) call.fail("its output_shape does not define the size of its weights");
    kernel = saturating_product(kernel, std::max<std::int64_t>(1, size_of(einsum, letter)));
  }
  std::int64_t bias = call.word("bias_axes").empty() ? 0 : 1;
  for (const char letter : call.word("bias_axes"))
    bias = saturating_product(bias, std::max<std::int64_t>(1, size_of(einsum, letter)));
  const Product product = product_of(einsum);
  call.weights({kernel, bias});
  call.emit(Kind::dense, "", {{"rows", product.m}, {"in", product.k}, {"out", product.n}, {"bias", bias > 0}},
            std::min(product.batch, kMaxElements));
  call.activation(call.word("activation"), product.out);
  return {product.out};
}

void emit_bmm(LayerCall& call, const Product& product, bool is_transposed) {
  Parameters parameters{{"batch", product.batch}, {"m", product.m}, {"k", product.k}, {"n", product.n}};
  if (is_transposed) parameters.set("transposed", 1);
  call.emit(Kind::bmm, "", std::move(parameters));
}

std::vector<Shape> einsum_function(LayerCall& call) {
  std::vector<Shape> shapes;
  for (const Input& input : call.inputs) shapes.push_back(input.tensor.sizes);
  const std::string equation = call.word("subscripts").empty() ? call.word("equation") : call.word("subscripts");
  const Einsum einsum = read_einsum(call, equation, shapes);
  if (call.failure() || einsum.operands.size() != shapes.size() || shapes.size() != 2) {
    call.fail("its equation does not combine two tensors");
    return {call.shape()};
  }
  const Product product = product_of(einsum);
  emit_bmm(call, product, false);
  return {product.out};
}

std::vector<Shape> matmul(LayerCall& call) {
  Shape one = call.shape(0);
  Shape other = call.shape(1);
  if (one.size() < 2 || other.size() < 2) {
    call.fail(fmt::format("{} and {} cannot be multiplied as matrices", text(one), text(other)));
    return {one};
  }
  const bool transposes = call.flag("transpose_b", false);
  if (call.flag("transpose_a", false)) std::swap(one[one.size() - 1], one[one.size() - 2]);
  if (transposes) std::swap(other[other.size() - 1], other[other.size() - 2]);
  Product product;
  product.m = one[one.size() - 2];
  product.k = one.back();
  product.n = other.back();
  if (other[other.size() - 2] != product.k)
    call.fail(fmt::format("{} is incompatible with {}", text(one), text(other)));
  const std::optional<Shape> batches =
      broadcast(Shape(one.begin(), one.end() - 2), Shape(other.begin(), other.end() - 2));
  if (!batches) call.fail(fmt::format("{} is incompatible with {}", text(one), text(other)));
  product.out = batches.value_or(Shape{});
  product.batch = elements(product.out);
  product.out.push_back(product.m);
  product.out.push_back(product.n);
  emit_bmm(call, product, transposes);
  return {product.out};
}

// The Dot layer: contracts one axis of each input. The result is the batch, the other axes of the first input, then
// those of the second.
std::vector<Shape> dot(LayerCall& call) {
  const Shape one = call.shape(0);
  const Shape other = call.shape(1);
  std::vector<std::int64_t> axes = call.axes("axes");
  if (axes.size() == 1) axes.push_back(axes.front());
  if (axes.size() != 2) call.fail("its axes are missing");
  if (call.failure()) return {one};
  const std::size_t left = call.axis(axes[0], one.size());
  const std::size_t right = call.axis(axes[1], other.size());
  if (call.failure() || left == 0 || right == 0 || one[left] != other[right]) {
    call.fail(fmt::format("{} is incompatible with {} along its axes", text(one), text(other)));
    return {one};
  }
  Product product;
  product.batch = one.front();
  product.k = one[left];
  product.m = elements(one) / one.front() / product.k;
  product.n = elements(other) / other.front() / product.k;
  product.out = {one.front()};
  for (std::size_t i = 1; i < one.size(); ++i) {
    if (i != left) product.out.push_back(one[i]);
  }
  for (std::size_t i = 1; i < other.size(); ++i) {
    if (i != right) product.out.push_back(other[i]);
  }
  if (product.out.size() == 1) product.out.push_back(1);
  emit_bmm(call, product, false);
  return {product.out};
}

constexpr NamedRule kRules[] = {
    {"Dense", dense},   {"EinsumDense", einsum_dense}, {"Embedding", embedding}, {"Dot", dot},
    {"matmul", matmul}, {"batchmatmulv2", matmul},     {"batchmatmul", matmul},  {"einsum", einsum_function},
};

}  // namespace

std::span<const NamedRule> dense_rules() { return kRules; }

}  // namespace joulemap::predict::keras
