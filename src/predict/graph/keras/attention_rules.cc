// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

// The input tensors of an attention layer, in Keras's order; the key defaults to the value.
struct AttentionInputs {
  Tensor query;
  Tensor value;
  Tensor key;
  std::int64_t batch = 1;
  std::int64_t query_count = 1;
  std::int64_t key_count = 1;
};

AttentionInputs read_attention_inputs(LayerCall& call) {
  AttentionInputs tensors;
  const Input* const query = call.find_input_named("query", 0);
  const Input* const value = call.find_input_named("value", 1);
  const Input* const key = call.find_input_named("key", 2);
  if (query == nullptr || value == nullptr) {
    call.set_failure("it has no query and value inputs");
    tensors.query.sizes = tensors.value.sizes = tensors.key.sizes = {1, 1, 1};
    return tensors;
  }
  tensors.query = query->tensor;
  tensors.value = value->tensor;
  tensors.key = key == nullptr ? value->tensor : key->tensor;
  for (const Tensor* tensor : {&tensors.query, &tensors.value, &tensors.key}) {
    if (tensor->sizes.size() >= 3) continue;
    call.set_failure(fmt::format("it attends to {}, which is not a batch of rows", shape_text(tensor->sizes)));
    tensors.query.sizes = tensors.value.sizes = tensors.key.sizes = {1, 1, 1};
    return tensors;
  }
  tensors.batch = tensors.query.sizes.front();
  tensors.query_count = element_count(tensors.query.sizes, 1, tensors.query.sizes.size() - 1);
  tensors.key_count = element_count(tensors.key.sizes, 1, tensors.key.sizes.size() - 1);
  return tensors;
}

// Emits the projection of query, key or value. They are independent branches: each has a gradient of its own, and any
// of them makes the result need one (`any_needs_gradient`).
void emit_projection(LayerCall& call, const Tensor& tensor, std::int64_t out, bool has_bias, bool& any_needs_gradient) {
  call.set_needs_gradient(tensor.needs_gradient);
  const std::int64_t in = tensor.sizes.back();
  emit_dense(call, element_count(tensor.sizes) / in, in, out, has_bias);
  any_needs_gradient = any_needs_gradient || call.needs_gradient();
}

void emit_attention(LayerCall& call, const AttentionInputs& tensors, std::int64_t heads, std::int64_t width) {
  OperationParameters parameters{{"batch", tensors.batch},
                                 {"heads", heads},
                                 {"queries", tensors.query_count},
                                 {"keys", tensors.key_count},
                                 {"width", width}};
  if (call.boolean_option("use_causal_mask", false) || call.boolean_option("causal", false))
    parameters.set("causal", 1);
  call.emit_operation(Kind::attention, "", std::move(parameters));
}

// With use_gate: emits the gate, a factor between 0 and 1 for each output element of the heads.
void emit_attention_gate(LayerCall& call, const AttentionInputs& tensors, std::int64_t width, bool has_bias,
                         bool& any_needs_gradient) {
  if (!call.boolean_option("use_gate", false)) return;
  emit_projection(call, tensors.query, width, has_bias, any_needs_gradient);
  call.emit_activation("sigmoid", {tensors.batch, tensors.query_count, width});
}

struct AttentionHeads {
  std::int64_t query_heads = 1;
  std::int64_t key_heads = 1;  // heads of keys and values; fewer if several query heads share one
  std::int64_t key_width = 1;
  std::int64_t value_width = 1;
  std::int64_t output_width = 1;
};

std::vector<Shape> emit_projected_attention(LayerCall& call, const AttentionInputs& tensors,
                                            const AttentionHeads& heads) {
  const bool has_bias = call.boolean_option("use_bias", true);
  bool needs = false;
  emit_projection(call, tensors.query, saturating_product(heads.query_heads, heads.key_width), has_bias, needs);
  emit_projection(call, tensors.key, saturating_product(heads.key_heads, heads.key_width), has_bias, needs);
  emit_projection(call, tensors.value, saturating_product(heads.key_heads, heads.value_width), has_bias, needs);
  const std::int64_t width = saturating_product(heads.query_heads, heads.value_width);
  emit_attention_gate(call, tensors, width, has_bias, needs);
  call.set_needs_gradient(needs);
  emit_attention(call, tensors, heads.query_heads, heads.key_width);
  if (call.boolean_option("use_gate", false)) {
    call.emit_elementwise(Kind::multiply, "same", {tensors.batch, tensors.query_count, width});
  }
  emit_dense(call, saturating_product(tensors.batch, tensors.query_count), width, heads.output_width, has_bias);
  Shape out = tensors.query.sizes;
  out.back() = heads.output_width;
  if (!call.boolean_option("return_attention_scores", false)) return {out};
  return {out, {tensors.batch, heads.query_heads, tensors.query_count, tensors.key_count}};
}

std::vector<Shape> apply_multi_head_attention(LayerCall& call) {
  const AttentionInputs tensors = read_attention_inputs(call);
  AttentionHeads heads;
  heads.query_heads = heads.key_heads = call.required_size_option("num_heads");
  heads.key_width = call.required_size_option("key_dim");
  heads.value_width = call.size_option_or("value_dim", heads.key_width);
  const std::vector<std::int64_t> out = call.axes_option("output_shape");
  heads.output_width = tensors.query.sizes.back();
  if (!out.empty()) heads.output_width = std::clamp<std::int64_t>(out.back(), 1, kMaxElements);
  return emit_projected_attention(call, tensors, heads);
}

std::vector<Shape> apply_group_query_attention(LayerCall& call) {
  const AttentionInputs tensors = read_attention_inputs(call);
  AttentionHeads heads;
  heads.query_heads = call.required_size_option("num_query_heads");
  heads.key_heads = call.required_size_option("num_key_value_heads");
  heads.key_width = heads.value_width = call.required_size_option("head_dim");
  heads.output_width = tensors.query.sizes.back();
  return emit_projected_attention(call, tensors, heads);
}

Shape attention_output_shape(const AttentionInputs& tensors) {
  Shape out = tensors.query.sizes;
  out.back() = tensors.value.sizes.back();
  return out;
}

std::vector<Shape> apply_dot_product_attention(LayerCall& call) {
  const AttentionInputs tensors = read_attention_inputs(call);
  if (call.boolean_option("use_scale", false)) call.count_weights({1});
  emit_attention(call, tensors, 1, tensors.query.sizes.back());
  return {attention_output_shape(tensors)};
}

// Additive (Bahdanau) attention: a sum over tanh(query + key) for every pair, without a matrix product before the
// softmax.
std::vector<Shape> apply_additive_attention(LayerCall& call) {
  const AttentionInputs tensors = read_attention_inputs(call);
  const std::int64_t width = tensors.query.sizes.back();
  const Shape pairs = {tensors.batch, tensors.query_count, tensors.key_count, width};
  call.emit_elementwise(Kind::add, "same", pairs);
  call.emit_activation("tanh", pairs);
  if (call.boolean_option("use_scale", true)) {
    call.count_weights({width});
    call.emit_operation(Kind::multiply, "last",
                        {{"batch", tensors.batch},
                         {"rows", saturating_product(tensors.query_count, tensors.key_count)},
                         {"width", width}});
  }
  OperationParameters sum = batch_rows_width_parameters(pairs);
  sum.set("over", 0);
  call.emit_operation(Kind::reduce, "sum", std::move(sum));
  call.emit_activation("softmax", {tensors.batch, tensors.query_count, tensors.key_count});
  call.emit_operation(Kind::bmm, "",
                      {{"batch", tensors.batch},
                       {"m", tensors.query_count},
                       {"k", tensors.key_count},
                       {"n", tensors.value.sizes.back()}});
  return {attention_output_shape(tensors)};
}

// keras.ops.nn.dot_product_attention, whose inputs are [batch, rows, heads, width].
std::vector<Shape> apply_attention_function(LayerCall& call) {
  const Shape query = call.input_shape(0);
  const Shape key = call.input_shape(1);
  if (query.size() != 4 || key.size() != 4) {
    call.set_failure("its inputs do not have the dimensions batch, rows, heads and width");
    return {query};
  }
  OperationParameters parameters{
      {"batch", query[0]}, {"heads", query[2]}, {"queries", query[1]}, {"keys", key[1]}, {"width", query[3]}};
  if (call.boolean_option("is_causal", false)) parameters.set("causal", 1);
  call.emit_operation(Kind::attention, "", std::move(parameters));
  return {query};
}

constexpr LayerClassRule kAttentionLayerRules[] = {
    {"MultiHeadAttention", apply_multi_head_attention},     {"GroupQueryAttention", apply_group_query_attention},
    {"GroupedQueryAttention", apply_group_query_attention}, {"Attention", apply_dot_product_attention},
    {"AdditiveAttention", apply_additive_attention},        {"dotproductattention", apply_attention_function},
};

}  // namespace

std::span<const LayerClassRule> attention_rules() { return kAttentionLayerRules; }

}  // namespace joulemap::predict::keras
