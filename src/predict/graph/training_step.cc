// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/training_step.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "predict/graph/last_matrix_product_tracker.h"
#include "predict/graph/work.h"

namespace joulemap::predict {
namespace {

constexpr std::string_view kLossLayerName = "loss";
constexpr std::string_view kOptimizerLayerName = "optimizer";

bool is_16_bit_type(Dtype dtype) { return dtype == Dtype::fp16 || dtype == Dtype::bf16; }

struct ClassScoreShape {
  std::int64_t score_row_count = 1;
  std::int64_t class_count = 1;
  Dtype dtype = Dtype::fp32;
};

// Converts a product of sizes to an integer from 1 to kMaxElements. It can exceed 64 bits if another size is 0.
std::int64_t to_whole_number(double value) {
  return static_cast<std::int64_t>(std::clamp(value, 1.0, static_cast<double>(kMaxElements)));
}

std::int64_t saturating_multiply(std::int64_t left_factor, std::int64_t right_factor) {
  return to_whole_number(static_cast<double>(left_factor) * static_cast<double>(right_factor));
}

// Output of a convolution, or of a pooling between the last convolution and the loss, as scores of each pixel.
ClassScoreShape pixel_class_scores(const Operation& operation, std::string_view channels) {
  const OperationParameters& p = operation.parameters;
  const SpatialExtent extent = output_extent(p);
  const double pixels = std::max(1.0, extent.height * extent.width * extent.depth);
  return {saturating_multiply(p.get("batch", 1), to_whole_number(pixels)), p.get(channels, 1), operation.dtype};
}

// Input of the loss: the output of the last product, after pooling. Empty if there is no product.
std::optional<ClassScoreShape> find_class_scores(const std::vector<Operation>& operations) {
  std::optional<ClassScoreShape> scores;
  bool is_image = false;
  for (const Operation& operation : operations) {
    const OperationParameters& p = operation.parameters;
    if (operation.kind == Kind::dense) {
      scores = {p.get("rows", 1), p.get("out", 1), operation.dtype};
      is_image = false;
    } else if (operation.kind == Kind::recurrent) {
      scores = {saturating_multiply(p.get("batch", 1), p.get("steps", 1)),
                saturating_multiply(p.get("directions", 1), p.get("projection", p.get("hidden", 1))), operation.dtype};
      is_image = false;
    } else if (operation.kind == Kind::convolution) {
      scores = pixel_class_scores(operation, "out");
      is_image = true;
    } else if (operation.kind == Kind::pooling && is_image && p.get("channels", 1) == scores->class_count) {
      scores = pixel_class_scores(operation, "channels");
    } else if (operation.kind == Kind::reduce && is_image) {
      scores->score_row_count = p.get("batch", 1);
    }
  }
  return scores;
}

Operation make_operation(std::string_view layer, Kind kind, std::string operation_form, OperationParameters parameters,
                         Dtype dtype) {
  Operation operation;
  operation.layer = layer;
  operation.source = name_of(kind);
  operation.kind = kind;
  operation.form = std::move(operation_form);
  operation.parameters = std::move(parameters);
  operation.dtype = dtype;
  return operation;
}

// The kernel with which PyTorch's batch norm counts its batches in a one-element tensor.
Operation make_batch_counter_update(const Operation& norm) {
  Operation count =
      make_operation(norm.layer, Kind::add, "scalar", {{"batch", 1}, {"rows", 1}, {"width", 1}}, Dtype::fp32);
  count.source = norm.source;
  count.gradient = NeededGradients::none;
  count.count = norm.count;
  return count;
}

std::vector<Operation> make_training_forward_operations(const Graph& graph) {
  std::vector<Operation> forward;
  for (const Operation& operation : graph.operations) {
    const bool is_frozen = operation.parameters.find("frozen").value_or(0) != 0;
    if (operation.kind == Kind::normalization && operation.form == "batch-inference" && !is_frozen) {
      forward.push_back(make_batch_counter_update(operation));
      forward.push_back(operation);
      forward.back().form = "batch";
    } else {
      forward.push_back(operation);
    }
  }
  return forward;
}

// Appends a cross entropy loss, which runs in 32 bits whatever the network's type. Does nothing if the graph already
// has a loss.
void append_cross_entropy(std::vector<Operation>& forward) {
  const auto is_loss = [](const Operation& operation) { return operation.kind == Kind::loss; };
  if (std::any_of(forward.begin(), forward.end(), is_loss)) return;
  const std::optional<ClassScoreShape> scores = find_class_scores(forward);
  if (!scores) return;
  if (is_16_bit_type(scores->dtype)) {
    OperationParameters shape{{"batch", 1}, {"rows", scores->score_row_count}, {"width", scores->class_count}};
    forward.push_back(make_operation(kLossLayerName, Kind::cast, "fp32", std::move(shape), scores->dtype));
  }
  OperationParameters shape{{"rows", scores->score_row_count}, {"classes", scores->class_count}};
  forward.push_back(make_operation(kLossLayerName, Kind::loss, "", std::move(shape), Dtype::fp32));
}

enum class BackwardRule {
  no_operation,                // computes no gradient, or passes its gradient on unchanged
  repeat_forward_kernel,       // the same kernel runs again
  cast_to_input_dtype,         // a cast back to the type of the input
  view_per_concatenated_part,  // a view of the gradient for each part
  backward,
};

BackwardRule choose_backward_rule(const Operation& operation) {
  switch (operation.kind) {
    case Kind::input:
    case Kind::optimizer:
      return BackwardRule::no_operation;
    case Kind::reshape:
    case Kind::view:
      return BackwardRule::repeat_forward_kernel;
    case Kind::concatenate:
      return BackwardRule::view_per_concatenated_part;
    case Kind::cast:
      return BackwardRule::cast_to_input_dtype;
    case Kind::reduce:
      return operation.form == "sum" ? BackwardRule::no_operation : BackwardRule::backward;
    case Kind::rescaling:
      return operation.parameters.get("from_bytes", 0) != 0 ? BackwardRule::no_operation : BackwardRule::backward;
    case Kind::add:
      // Both operands receive the gradient unchanged. But in a residual connection one of them has a second reader,
      // whose gradient is added there: the same kernel.
      if (operation.form == "same") return BackwardRule::repeat_forward_kernel;
      return operation.form == "scalar" ? BackwardRule::no_operation : BackwardRule::backward;
    case Kind::multiply:
      return operation.form == "scalar" ? BackwardRule::repeat_forward_kernel : BackwardRule::backward;
    default:
      return BackwardRule::backward;
  }
}

bool has_weights(Kind kind) {
  return kind == Kind::dense || kind == Kind::convolution || kind == Kind::embedding || kind == Kind::normalization ||
         kind == Kind::recurrent;
}

// Pass of the backward operation. Only products can skip the input gradient; a norm or an embedding computes all
// gradients in one kernel.
Pass choose_backward_pass(const Operation& operation) {
  const bool is_dense_or_convolution = operation.kind == Kind::dense || operation.kind == Kind::convolution;
  return is_dense_or_convolution && operation.gradient == NeededGradients::weights ? Pass::backward_weights
                                                                                   : Pass::backward;
}

Operation make_backward_operation(const Operation& forward, BackwardRule backward_rule) {
  Operation backward = forward;
  if (backward_rule == BackwardRule::backward) backward.pass = choose_backward_pass(forward);
  if (backward_rule == BackwardRule::cast_to_input_dtype) {
    backward.form = name_of(forward.dtype);
    backward.dtype = dtype_from_name(forward.form).value_or(forward.dtype);
  }
  if (backward_rule == BackwardRule::view_per_concatenated_part) {
    backward.kind = Kind::view;
    backward.count = saturating_multiply(forward.count, forward.parameters.get("parts", 1));
  }
  return backward;
}

// Number of gradient additions for inputs with more than one reader: a tensor multiplied by rows that were computed
// from it (squeeze and excitation, norms written as primitives), and the branches of a concatenation.
std::int64_t gradient_accumulation(const Operation& forward) {
  if (forward.kind == Kind::concatenate) return std::max<std::int64_t>(0, forward.parameters.get("parts", 1) - 1);
  return forward.kind == Kind::multiply && forward.form == "row" ? 1 : 0;
}

void append_backward_operations(const Operation& forward, std::vector<Operation>& reversed_operations) {
  if (forward.gradient == NeededGradients::none) return;
  if (forward.gradient == NeededGradients::weights && !has_weights(forward.kind)) return;
  if (const std::int64_t addition_count = gradient_accumulation(forward); addition_count > 0) {
    const OperationParameters& p = forward.parameters;
    OperationParameters part{{"batch", p.get("batch", 1)}, {"rows", p.get("rows", 1)}, {"width", p.get("width", 1)}};
    reversed_operations.push_back(make_operation(forward.layer, Kind::add, "same", std::move(part), forward.dtype));
    reversed_operations.back().source = forward.source;
    reversed_operations.back().count = saturating_multiply(forward.count, addition_count);
  }
  if (const BackwardRule backward_rule = choose_backward_rule(forward); backward_rule != BackwardRule::no_operation)
    reversed_operations.push_back(make_backward_operation(forward, backward_rule));
}

// A sum or product of 16-bit and 32-bit operands is in 32 bits; the gradient of the 16-bit operand needs a cast. Empty
// if there is none.
std::optional<Operation> make_gradient_cast(const Operation& previous_operation, const Operation& operation) {
  if (operation.gradient != NeededGradients::all || operation.dtype != Dtype::fp32 ||
      !is_16_bit_type(previous_operation.dtype))
    return {};
  if (operation.kind != Kind::add && operation.kind != Kind::multiply) return {};
  if (previous_operation.kind == Kind::cast) return {};
  Operation cast_operation = operation;
  cast_operation.kind = Kind::cast;
  cast_operation.form = name_of(previous_operation.dtype);
  return cast_operation;
}

// The gradient of an input that several products read is a sum: in 32 bits if each of them casts its input.
Operation make_gradient_sum(const Operation& previous_operation, const Operation& product) {
  const OperationParameters& p = product.parameters;
  OperationParameters shape{{"batch", 1}, {"rows", p.get("rows", 1)}, {"width", p.get("in", 1)}};
  const bool in_16_bits = is_16_bit_type(product.dtype) && previous_operation.kind != Kind::cast;
  const Dtype dtype = in_16_bits ? product.dtype : Dtype::fp32;
  Operation sum = make_operation(product.layer, Kind::add, "same", std::move(shape), dtype);
  sum.source = product.source;
  sum.count = product.count;
  return sum;
}

// The operations of the backward pass in forward order; the caller reverses them.
std::vector<Operation> make_unreversed_backward_operations(const std::vector<Operation>& forward) {
  std::vector<Operation> reversed_operations;
  LastMatrixProductTracker last;
  for (std::size_t index = 0; index < forward.size(); ++index) {
    const Operation& operation = forward[index];
    if (operation.gradient == NeededGradients::all && last.has_input_of_last_product(operation)) {
      reversed_operations.push_back(make_gradient_sum(forward[index - 1], operation));
    }
    last.update(operation);
    if (index > 0) {
      if (auto gradient_cast = make_gradient_cast(forward[index - 1], operation))
        reversed_operations.push_back(std::move(*gradient_cast));
    }
    append_backward_operations(operation, reversed_operations);
  }
  return reversed_operations;
}

// Type in which weights are stored, by the first operation with weights: that of the operation, unless casts convert
// them before each use.
Dtype stored_weights_dtype(const std::vector<Operation>& operations) {
  bool is_cast = false;
  for (const Operation& operation : operations) {
    is_cast = is_cast || (operation.kind == Kind::cast && operation.dtype == Dtype::fp32 && operation.form != "fp32");
    if (!has_weights(operation.kind)) continue;
    return is_16_bit_type(operation.dtype) && !is_cast ? operation.dtype : Dtype::fp32;
  }
  return Dtype::fp32;
}

}  // namespace

std::vector<Operation> make_training_step(const Graph& graph, std::string_view optimizer) {
  const auto is_step = [](const Operation& operation) { return operation.pass != Pass::forward; };
  if (std::any_of(graph.operations.begin(), graph.operations.end(), is_step)) return graph.operations;
  std::vector<Operation> step = make_training_forward_operations(graph);
  append_cross_entropy(step);
  std::vector<Operation> reversed_operations = make_unreversed_backward_operations(step);
  step.insert(step.end(), std::make_move_iterator(reversed_operations.rbegin()),
              std::make_move_iterator(reversed_operations.rend()));
  if (graph.weight_element_count > 0) {
    OperationParameters weights{{"tensors", graph.weight_tensor_count}, {"elements", graph.weight_element_count}};
    const Dtype dtype = stored_weights_dtype(graph.operations);
    step.push_back(
        make_operation(kOptimizerLayerName, Kind::optimizer, std::string(optimizer), std::move(weights), dtype));
    step.back().pass = Pass::optimizer;
    step.back().source = optimizer;
  }
  return step;
}

}  // namespace joulemap::predict
