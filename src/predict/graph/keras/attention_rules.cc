// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

// The input tensors of an attention layer, in Keras's order; the key defaults to the value.
struct Attended {
  Tensor query;
  Tensor value;
  Tensor key;
  std::int64_t batch = 1;
  std::int64_t queries = 1;
  std::int64_t keys = 1;
};

Attended attended(LayerCall& call) {
  Attended tensors;
  const Input* const query = call.named("query", 0);
  const Input* const value = call.named("value", 1);
  const Input* const key = call.named("key", 2);
  if (query == nullptr || value == nullptr) {
    call.fail("it has no query and value inputs");
    tensors.query.sizes = tensors.value.sizes = tensors.key.sizes = {1, 1, 1};
    return tensors;
  }
  tensors.query = query->tensor;
  tensors.value = value->tensor;
  tensors.key = key == nullptr ? value->tensor : key->tensor;
  for (const Tensor* tensor : {&tensors.query, &tensors.value, &tensors.key}) {
    if (tensor->sizes.size() >= 3) continue;
    call.fail(fmt::format("it attends to {}, which is not a batch of rows", text(tensor->sizes)));
    tensors.query.sizes = tensors.value.sizes = tensors.key.sizes = {1, 1, 1};
    return tensors;
  }
  tensors.batch = tensors.query.sizes.front();
  tensors.queries = elements(tensors.query.sizes, 1, tensors.query.sizes.size() - 1);
  tensors.keys = elements(tensors.key.sizes, 1, tensors.key.sizes.size() - 1);
  return tensors;
}

// Emits the projection of query, key or value. They are independent branches: each has a gradient of its own, and any
// of them makes the result need one (`any_needs`).
void project(LayerCall& call, const Tensor& tensor, std::int64_t out, bool has_bias, bool& any_needs) {
  call.set_needs_gradient(tensor.needs_gradient);
  const std::int64_t in = tensor.sizes.back();
  emit_dense(call, elements(tensor.sizes) / in, in, out, has_bias);
  any_needs = any_needs || call.needs_gradient();
}

void emit_attention(LayerCall& call, const Attended& tensors, std::int64_t heads, std::int64_t width) {
  Parameters parameters{{"batch", tensors.batch},
                        {"heads", heads},
                        {"queries", tensors.queries},
                        {"keys", tensors.keys},
                        {"width", width}};
  if (call.flag("use_causal_mask", false) || call.flag("causal", false)) parameters.set("causal", 1);
  call.emit(Kind::attention, "", std::move(parameters));
}

// With use_gate: emits the gate, a factor between 0 and 1 for each output element of the heads.
void emit_gate(LayerCall& call, const Attended& tensors, std::int64_t width, bool has_bias, bool& any_needs) {
  if (!call.flag("use_gate", false)) return;
  project(call, tensors.query, width, has_bias, any_needs);
  call.activation("sigmoid", {tensors.batch, tensors.queries, width});
}

struct Heads {
  std::int64_t queries = 1;
  std::int64_t keys = 1;  // heads of keys and values; fewer if several query heads share one
  std::int64_t key_width = 1;
  std::int64_t value_width = 1;
  std::int64_t out = 1;
};

std::vector<Shape> attend_with_weights(LayerCall& call, const Attended& tensors, const Heads& heads) {
  const bool has_bias = call.flag("use_bias", true);
  bool needs = false;
  project(call, tensors.query, saturating_product(heads.queries, heads.key_width), has_bias, needs);
  project(call, tensors.key, saturating_product(heads.keys, heads.key_width), has_bias, needs);
  project(call, tensors.value, saturating_product(heads.keys, heads.value_width), has_bias, needs);
  const std::int64_t width = saturating_product(heads.queries, heads.value_width);
  emit_gate(call, tensors, width, has_bias, needs);
  call.set_needs_gradient(needs);
  emit_attention(call, tensors, heads.queries, heads.key_width);
  if (call.flag("use_gate", false)) {
    call.elementwise(Kind::multiply, "same", {tensors.batch, tensors.queries, width});
  }
  emit_dense(call, saturating_product(tensors.batch, tensors.queries), width, heads.out, has_bias);
  Shape out = tensors.query.sizes;
  out.back() = heads.out;
  if (!call.flag("return_attention_scores", false)) return {out};
  return {out, {tensors.batch, heads.queries, tensors.queries, tensors.keys}};
}

std::vector<Shape> multi_head_attention(LayerCall& call) {
  const Attended tensors = attended(call);
  Heads heads;
  heads.queries = heads.keys = call.size("num_heads");
  heads.key_width = call.size("key_dim");
  heads.value_width = call.size_or("value_dim", heads.key_width);
  const std::vector<std::int64_t> out = call.axes("output_shape");
  heads.out = tensors.query.sizes.back();
  if (!out.empty()) heads.out = std::clamp<std::int64_t>(out.back(), 1, kMaxElements);
  return attend_with_weights(call, tensors, heads);
}

std::vector<Shape> group_query_attention(LayerCall& call) {
  const Attended tensors = attended(call);
  Heads heads;
  heads.queries = call.size("num_query_heads");
  heads.keys = call.size("num_key_value_heads");
  heads.key_width = heads.value_width = call.size("head_dim");
  heads.out = tensors.query.sizes.back();
  return attend_with_weights(call, tensors, heads);
}

Shape attended_shape(const Attended& tensors) {
  Shape out = tensors.query.sizes;
  out.back() = tensors.value.sizes.back();
  return out;
}

std::vector<Shape> plain_attention(LayerCall& call) {
  const Attended tensors = attended(call);
  if (call.flag("use_scale", false)) call.weights({1});
  emit_attention(call, tensors, 1, tensors.query.sizes.back());
  return {attended_shape(tensors)};
}

// Additive (Bahdanau) attention: a sum over tanh(query + key) for every pair, without a matrix product before the
// softmax.
std::vector<Shape> additive_attention(LayerCall& call) {
  const Attended tensors = attended(call);
  const std::int64_t width = tensors.query.sizes.back();
  const Shape pairs = {tensors.batch, tensors.queries, tensors.keys, width};
  call.elementwise(Kind::add, "same", pairs);
  call.activation("tanh", pairs);
  if (call.flag("use_scale", true)) {
    call.weights({width});
    call.emit(
        Kind::multiply, "last",
        {{"batch", tensors.batch}, {"rows", saturating_product(tensors.queries, tensors.keys)}, {"width", width}});
  }
  Parameters sum = batch_rows_width(pairs);
  sum.set("over", 0);
  call.emit(Kind::reduce, "sum", std::move(sum));
  call.activation("softmax", {tensors.batch, tensors.queries, tensors.keys});
  call.emit(Kind::bmm, "",
            {{"batch", tensors.batch}, {"m", tensors.queries}, {"k", tensors.keys}, {"n", tensors.value.sizes.back()}});
  return {attended_shape(tensors)};
}

// keras.ops.nn.dot_product_attention, whose inputs are [batch, rows, heads, width].
std::vector<Shape> attention_function(LayerCall& call) {
  const Shape query = call.shape(0);
  const Shape key = call.shape(1);
  if (query.size() != 4 || key.size() != 4) {
    call.fail("its inputs do not have the dimensions batch, rows, heads and width");
    return {query};
  }
  Parameters parameters{
      {"batch", query[0]}, {"heads", query[2]}, {"queries", query[1]}, {"keys", key[1]}, {"width", query[3]}};
  if (call.flag("is_causal", false)) parameters.set("causal", 1);
  call.emit(Kind::attention, "", std::move(parameters));
  return {query};
}

constexpr NamedRule kRules[] = {
    {"MultiHeadAttention", multi_head_attention},     {"GroupQueryAttention", group_query_attention},
    {"GroupedQueryAttention", group_query_attention}, {"Attention", plain_attention},
    {"AdditiveAttention", additive_attention},        {"dotproductattention", attention_function},
};

}  // namespace

std::span<const NamedRule> attention_rules() { return kRules; }

}  // namespace joulemap::predict::keras
