// SPDX-License-Identifier: Apache-2.0
//
// One call of one Keras layer, as the rules of layers see it: its configuration, the tensors that come in, and a place to
// put operations and weights. A rule gives the shapes that come out. What is wrong is kept (the first, with the layer's
// name) while the rule goes on with ones: a rule is then as short as the layer is simple, and nobody forgets a check. Used
// by one thread; lives as long as the call and refers to the document of the model.
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
  bool needs_gradient = false;  // something trainable lies before it
  bool has_fractions = true;    // not whole numbers: those are never cast
  // Of a sequence that a recurrent layer has written: which operation of the graph that is.
  std::optional<std::size_t> stack = {};
};

struct Input {
  std::string keyword;  // empty: by its place
  Tensor tensor;
};

// What holds for a layer, by itself and by the models around it.
struct LayerTraits {
  std::string path;        // "outer.inner.conv"
  std::string class_name;  // without blanks: "Conv2D", of a TensorFlow function its name
  Dtype dtype = Dtype::fp32;
  bool is_mixed = false;  // weights are kept in 32 bits and cast for every call
  bool is_trainable = true;
  bool is_inference = false;   // called with training=False, whatever the run does
  bool counts_weights = true;  // not so when the layer is called again: its weights are the same
};

// What the model's text says: the layer's configuration, and what it was called with. Null where there is none.
struct CallText {
  const DocumentValue* config = nullptr;
  const DocumentValue* positional = nullptr;
  const DocumentValue* keywords = nullptr;
};

class LayerCall {
 public:
  LayerCall(LayerTraits layer_traits, CallText call_text, std::vector<Input> call_inputs, Graph& into);

  LayerTraits traits;
  CallText written;
  std::vector<Input> inputs;
  std::optional<std::size_t> stack;  // of a recurrent layer that gives its sequence: its operation

  // ---- what comes in
  const Shape& shape(std::size_t input = 0);  // fails where there is none
  const Input* named(std::string_view keyword, std::size_t place) const;
  std::int64_t dimension(std::int64_t axis);  // of the first input
  std::size_t axis(std::int64_t axis, std::size_t dimensions);
  void need_dimensions(std::size_t least, std::size_t most);  // of the first input
  bool is_channels_last(std::string_view otherwise = "channels_last") const;

  // ---- configuration: of the layer, else what the call was given by keyword
  const DocumentValue* option(std::string_view key) const;
  bool flag(std::string_view key, bool otherwise) const;
  std::string word(std::string_view key) const;  // a text, or the name of the object that stands there; empty without
  std::int64_t size(std::string_view key);       // 1 and more, of a layer that is nothing without it
  std::int64_t size_or(std::string_view key, std::int64_t otherwise);
  // One number for all dimensions, or one for each; `otherwise` where it is missing.
  std::vector<std::int64_t> factors(std::string_view key, std::size_t dimensions, std::int64_t otherwise);
  std::vector<std::int64_t> axes(std::string_view key) const;  // a number or a list; empty where there is none
  Padding padding();

  // ---- what comes out
  // Weights of the next operation; those that training changes are counted.
  void weights(std::initializer_list<std::int64_t> sizes);
  void emit(Kind kind, std::string_view form, Parameters parameters, std::int64_t count = 1);
  void elementwise(Kind kind, std::string_view form, const Shape& shape, std::int64_t count = 1);
  void activation(std::string_view name, const Shape& shape, std::int64_t axis = -1);  // "linear" and "": nothing
  void view(const Shape& shape) { elementwise(Kind::view, "", shape); }
  // One more layer of the stack that it reads, or an operation of its own; which one of the graph's it is.
  std::size_t emit_recurrent(std::string_view form, Parameters parameters);
  void unknown(std::string_view reason, const std::vector<Shape>& outputs, bool is_bounded);

  // Between two branches of a layer: the second does not come behind the first.
  bool needs_gradient() const { return needs_gradient_; }
  void set_needs_gradient(bool needs) { needs_gradient_ = needs; }

  void fail(std::string_view what, std::string_view remedy = "");
  const std::optional<Error>& failure() const { return failure_; }

 private:
  std::int64_t checked(std::optional<std::int64_t> value, std::string_view key, std::int64_t most);

  Graph& graph_;
  bool needs_gradient_ = false;
  bool has_trainable_weights_ = false;  // the next operation
  std::optional<Error> failure_;
};

// As operations have them: any factors; `width` is the last dimension.
Parameters batch_rows_width(const Shape& shape);
// The second of two tensors against the first: same, row, last or scalar, with factors that say how large it is.
struct PairForm {
  std::string_view form;
  Parameters parameters;
};
PairForm pair_form(const Shape& out, const Shape& one, const Shape& other);

}  // namespace joulemap::predict::keras
