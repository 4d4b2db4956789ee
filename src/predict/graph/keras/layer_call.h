// SPDX-License-Identifier: Apache-2.0
//
// One call of one Keras layer, for the layer rules: its configuration, its input tensors, and methods that emit
// operations and weights. A rule returns the output shapes. set_failure() stores the first error, with the layer's
// name, and the rule continues with sizes of 1: rules stay short, and the caller checks for errors once. For one
// thread; lives as long as the call and refers to the model's document.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/document.h"
#include "predict/graph/graph.h"
#include "predict/graph/keras/shape.h"

namespace joulemap::predict::keras {

using formats::DocumentValue;

struct Tensor {
  Shape sizes;
  Dtype dtype = Dtype::fp32;
  bool needs_gradient = false;    // depends on something trainable
  bool is_floating_point = true;  // false: integers, which are never cast
  // For the sequence that a recurrent layer returns: index of its operation in the graph.
  std::optional<std::size_t> stack = {};
};

struct Input {
  std::string keyword;  // empty: positional
  Tensor tensor;
};

// Properties of a layer, its own and those inherited from enclosing models.
struct LayerTraits {
  std::string layer_path;  // "outer.inner.conv"
  std::string class_name;  // "Conv2D"; for a TensorFlow function its name
  Dtype dtype = Dtype::fp32;
  bool has_mixed_precision = false;  // weights are stored in 32 bits and cast for every call
  bool is_trainable = true;
  bool runs_in_inference_mode = false;  // called with training=False, also in a training step
  bool adds_weights_to_graph = true;    // false for repeated calls, which share the weights
};

// Parts of the model's document: the layer's configuration and its call arguments. Null if absent.
struct CallJson {
  const DocumentValue* config = nullptr;
  const DocumentValue* positional = nullptr;
  const DocumentValue* keywords = nullptr;
};

class LayerCall {
 public:
  LayerCall(LayerTraits layer_traits, CallJson call_text, std::vector<Input> call_inputs, Graph& target_graph);

  LayerTraits traits;
  CallJson call_json;
  std::vector<Input> inputs;
  std::optional<std::size_t>
      recurrent_stack;  // for a recurrent layer that returns its sequence: index of its operation

  // ---- inputs
  const Shape& input_shape(std::size_t input = 0);  // calls set_failure() if there is none
  const Input* find_input_named(std::string_view keyword, std::size_t position) const;
  std::int64_t input_dimension(std::int64_t axis);  // of the first input
  std::size_t normalize_axis(std::int64_t axis, std::size_t dimensions);
  void require_dimension_count(std::size_t min_dimension_count, std::size_t max_dimension_count);  // of the first input
  bool is_channels_last(std::string_view default_value = "channels_last") const;

  // ---- configuration: of the layer, else from the keyword arguments of the call
  const DocumentValue* find_option(std::string_view key) const;
  bool boolean_option(std::string_view key, bool default_value) const;
  std::string text_option(std::string_view key) const;      // a text, or the class name of an object; empty if absent
  std::int64_t required_size_option(std::string_view key);  // a required option of at least 1
  std::int64_t size_option_or(std::string_view key, std::int64_t default_value);
  // One number for all dimensions, or one for each; `default_value` if absent.
  std::vector<std::int64_t> per_dimension_option(std::string_view key, std::size_t dimensions,
                                                 std::int64_t default_value);
  std::vector<std::int64_t> axes_option(std::string_view key) const;  // a number or a list; empty if absent
  Padding padding_option();

  // Element counts of the weights of the next operation (0: none). Adds trainable ones to the graph's count.
  void count_weights(std::initializer_list<std::int64_t> sizes);
  void emit_operation(Kind kind, std::string_view operation_form, OperationParameters parameters,
                      std::int64_t count = 1);
  void emit_elementwise(Kind kind, std::string_view operation_form, const Shape& shape, std::int64_t count = 1);
  void emit_activation(std::string_view name, const Shape& shape,
                       std::int64_t axis = -1);  // "linear" and "" emit nothing
  void emit_view(const Shape& shape) { emit_elementwise(Kind::view, "", shape); }
  // Emits a recurrent layer. If the input comes from a recurrent operation that can include it, as
  // is_next_recurrent_layer() decides, it becomes a further layer of that operation. Returns the operation's index in
  // the graph.
  std::size_t emit_recurrent(std::string_view operation_form, OperationParameters parameters);
  void emit_unknown(std::string_view reason, const std::vector<Shape>& outputs, bool has_lower_bound);

  // Whether the next operation's input needs a gradient. Layers with branches set it for each branch.
  bool needs_gradient() const { return needs_gradient_; }
  void set_needs_gradient(bool needs) { needs_gradient_ = needs; }

  void set_failure(std::string_view failure_reason, std::string_view remedy = "");
  const std::optional<Error>& failure() const { return failure_; }

 private:
  std::int64_t check_size_option(std::optional<std::int64_t> value, std::string_view key, std::int64_t max_size);

  Graph& graph_;
  bool needs_gradient_ = false;
  bool has_trainable_weights_ = false;  // whether the next operation has any
  std::optional<Error> failure_;
};

// A shape as the parameters batch (first dimension), width (last) and rows (product of the others).
OperationParameters batch_rows_width_parameters(const Shape& shape);
// Form of a binary operation (operation.h) by the shape of the smaller tensor: same, row, last or scalar, with matching
// batch, rows and width.
struct BroadcastForm {
  std::string_view form;
  OperationParameters parameters;
};
BroadcastForm broadcast_form(const Shape& out, const Shape& left_shape, const Shape& right_shape);

}  // namespace joulemap::predict::keras
