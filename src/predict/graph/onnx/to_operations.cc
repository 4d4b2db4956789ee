// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/onnx/to_operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "predict/graph/recurrent.h"

namespace joulemap::predict::onnx {
namespace {

// Limit of steps between two layers of a recurrent stack, such as a transposition, a reshape, a dropout.
constexpr std::size_t kMaxStepsBetweenRecurrentLayers = 6;

std::size_t to_vector_index(int number) { return static_cast<std::size_t>(number); }

// Whether a constant input is a setting of the operation, which is never trained.
bool is_untrained_input(std::string_view type, std::size_t position) {
  if (type == "BatchNormalization") return position >= 3;
  if (type == "Clip" || type == "Resize" || type == "Pad" || type == "Pow" || type == "RotaryEmbedding")
    return position >= 1;
  if (type == "Cos" || type == "Sin") return true;  // tables of angles
  return type == "QuantizeLinear" || type == "DequantizeLinear" ? position >= 1 : type == "Range" || type == "Where";
}

// The 16-bit type that most elements of the weights have; empty if there is none.
std::optional<Dtype> dominant_16_bit_weight_dtype(const Program& program) {
  double float16_elements = 0;
  double bfloat16_elements = 0;
  double total_elements = 0;
  for (std::size_t i = 0; i < program.values.size(); ++i) {
    const Value& value = program.values[i];
    if (value.source_weight != static_cast<int>(i) || !value.sizes) continue;
    const auto elements = static_cast<double>(onnx_element_count(*value.sizes));
    total_elements += elements;
    if (value.type == DataType::float16) float16_elements += elements;
    if (value.type == DataType::bfloat16) bfloat16_elements += elements;
  }
  if (2 * float16_elements > total_elements) return Dtype::fp16;
  return 2 * bfloat16_elements > total_elements ? std::optional(Dtype::bf16) : std::nullopt;
}

class OperationEmitter {
 public:
  OperationEmitter(const Program& program, const GraphOptions& options, Graph& graph)
      : program_(program),
        graph_(graph),
        real_dtype_(options.dtype),
        is_differentiable_(program.values.size()),
        is_trained_(program.values.size()),
        first_operation_of_step_(program.steps.size()) {
    const std::optional<Dtype> stored_dtype = dominant_16_bit_weight_dtype(program);
    if (!stored_dtype) return;
    if (*stored_dtype != options.dtype) {
      graph_.notes.push_back(
          fmt::format("the weights of the file are {}, and so is the arithmetic on them", name_of(*stored_dtype)));
    }
    if (real_dtype_ == Dtype::fp16 || real_dtype_ == Dtype::bf16) real_dtype_ = Dtype::fp32;
  }

  void run() {
    for (const ProgramStep& step : program_.steps) {
      if (step.outputs.empty() || is_constant(step)) continue;
      const NeededGradients gradient = set_needed_gradients(step);
      if (step.fused_into == kNoIndex) emit_step_operations(step, gradient);
    }
    for (std::size_t i = 0; i < is_trained_.size(); ++i) {
      if (!is_trained_[i]) continue;
      ++graph_.weight_tensor_count;
      graph_.weight_element_count =
          std::min(kMaxElements, graph_.weight_element_count + onnx_element_count(*program_.values[i].sizes));
    }
  }

 private:
  const Value& value(int id) const { return program_.values[to_vector_index(id)]; }
  bool is_constant(const ProgramStep& step) const {
    return std::all_of(step.outputs.begin(), step.outputs.end(), [this](int id) { return value(id).is_constant; });
  }

  NeededGradients set_needed_gradients(const ProgramStep& step) {
    bool has_trained_weight = false;
    bool is_input_differentiable = false;
    for (std::size_t position = 0; position < step.inputs.size(); ++position) {
      const int id = step.inputs[position];
      if (id == kNoIndex) continue;
      is_input_differentiable = is_input_differentiable || is_differentiable_[to_vector_index(id)];
      const int weight = value(id).source_weight;
      if (weight == kNoIndex || !value(weight).sizes || is_untrained_input(step.type, position)) continue;
      has_trained_weight = true;
      is_trained_[to_vector_index(weight)] = true;
    }
    for (const int id : step.outputs) {
      is_differentiable_[to_vector_index(id)] = (has_trained_weight || is_input_differentiable) &&
                                                (is_floating_point(value(id).type) || !step.failure_reason.empty());
    }
    return is_input_differentiable ? NeededGradients::all
           : has_trained_weight    ? NeededGradients::weights
                                   : NeededGradients::none;
  }

  // Computing type of a step. A cast has the type of its input; operations on indices and masks have the network's
  // type.
  Dtype step_dtype(const ProgramStep& step) const {
    for (const auto* const value_ids : {&step.outputs, &step.inputs}) {
      for (const int id : *value_ids) {
        if (id == kNoIndex || (value_ids == &step.outputs && step.type == "Cast")) continue;
        if (value(id).type == DataType::float16) return Dtype::fp16;
        if (value(id).type == DataType::bfloat16) return Dtype::bf16;
        if (is_floating_point(value(id).type)) return real_dtype_;
      }
    }
    return real_dtype_;
  }

  static std::string operator_name_of(const ProgramStep& step) {
    if (step.node->operator_domain.empty()) return to_valid_utf8(step.type);
    return to_valid_utf8(step.node->operator_domain) + "." + to_valid_utf8(step.type);
  }

  bool has_known_sizes(const ProgramStep& step) const {
    const auto is_size_known = [this](int id) { return id == kNoIndex || value(id).sizes.has_value(); };
    return std::all_of(step.inputs.begin(), step.inputs.end(), is_size_known) &&
           std::all_of(step.outputs.begin(), step.outputs.end(), is_size_known);
  }

  std::size_t step_index(const ProgramStep& step) const {
    return static_cast<std::size_t>(&step - program_.steps.data());
  }

  static bool only_moves_elements(const ProgramStep& step) {
    constexpr std::array<std::string_view, 6> kElementMovingTypes = {"Squeeze",   "Unsqueeze", "Reshape",
                                                                     "Transpose", "Identity",  "Dropout"};
    return step.node->operator_domain.empty() &&
           std::ranges::find(kElementMovingTypes, step.type) != kElementMovingTypes.end();
  }

  // The recurrent operation whose sequence reaches `step` through layout changes only, and the operations of these.
  struct RecurrentStack {
    std::optional<std::size_t> operation;
    std::vector<std::size_t> layout_operations;
  };
  RecurrentStack find_recurrent_stack_before(const ProgramStep& step) const {
    RecurrentStack stack;
    const ProgramStep* current_step = &step;
    while (!current_step->inputs.empty() && current_step->inputs[0] != kNoIndex &&
           stack.layout_operations.size() < kMaxStepsBetweenRecurrentLayers) {
      const Value& input_value = value(current_step->inputs[0]);
      if (input_value.producer_step == kNoIndex) return stack;
      current_step = &program_.steps[to_vector_index(input_value.producer_step)];
      const std::optional<std::size_t> first_operation = first_operation_of_step_[step_index(*current_step)];
      if (first_operation && graph_.operations[*first_operation].kind == Kind::recurrent) {
        // The first output is the sequence; the others are states.
        if (current_step->outputs[0] != kNoIndex && &value(current_step->outputs[0]) == &input_value)
          stack.operation = first_operation;
        return stack;
      }
      if (!only_moves_elements(*current_step)) return stack;
      if (first_operation) stack.layout_operations.push_back(*first_operation);
    }
    return stack;
  }

  // Whether `operation` becomes part of the recurrent operation before it. A further layer is merged into that
  // operation, and copies in between become views. The copy that concatenates both directions is not needed, either.
  bool try_join_recurrent_stack(const ProgramStep& step, const Operation& operation) {
    if (operation.kind == Kind::reshape) {  // the copy that concatenates both directions
      const RecurrentStack stack = find_recurrent_stack_before(step);
      return stack.operation && stack.layout_operations.empty() &&
             graph_.operations[*stack.operation].parameters.get("directions", 1) > 1;
    }
    if (operation.kind != Kind::recurrent) return false;
    const RecurrentStack stack = find_recurrent_stack_before(step);
    if (!stack.operation || !is_next_recurrent_layer(graph_.operations[*stack.operation], operation)) return false;
    for (const std::size_t move : stack.layout_operations) {
      if (graph_.operations[move].kind == Kind::reshape) graph_.operations[move].kind = Kind::view;
    }
    append_recurrent_layer(graph_.operations[*stack.operation], operation);
    first_operation_of_step_[step_index(step)] = stack.operation;
    return true;
  }

  void emit_step_operations(const ProgramStep& step, NeededGradients gradient) {
    if (step.failure_reason.empty() && has_known_sizes(step)) {
      const SizedStep sized_step{program_, step, real_dtype_};
      for (const auto translate :
           {&translate_product_node, &translate_image_node, &translate_layout_node, &translate_elementwise_node}) {
        Translations translations = translate(sized_step);
        if (!translations) continue;
        for (TranslatedOperation& translation : *translations)
          emit_translated_operation(step, gradient, std::move(translation));
        return;
      }
    }
    emit_unknown(step, gradient);
  }

  void emit_translated_operation(const ProgramStep& step, NeededGradients gradient, TranslatedOperation translation) {
    const std::int64_t count = product_of_sizes({translation.repeat_count, step.repeat_count}, 0, 2);
    if (count == 0) return;
    Operation operation{.layer = step.layer,
                        .source = operator_name_of(step),
                        .kind = translation.kind,
                        .form = std::move(translation.form),
                        .parameters = std::move(translation.parameters),
                        .dtype = step_dtype(step),
                        .gradient = gradient,
                        .count = count};
    if (try_join_recurrent_stack(step, operation)) {
      if (operation.kind == Kind::recurrent) return;
      operation.kind = Kind::view;
    }
    std::optional<std::size_t>& first_operation = first_operation_of_step_[step_index(step)];
    if (!first_operation) first_operation = graph_.operations.size();
    graph_.operations.push_back(std::move(operation));
  }

  void emit_unknown(const ProgramStep& step, NeededGradients gradient) {
    const bool has_lower_bound = has_known_sizes(step);
    TranslatedOperation translation;
    if (has_lower_bound) {
      std::int64_t in = 0;
      std::int64_t out = 0;
      for (const int id : step.inputs)
        in = std::min(kMaxElements, in + (id == kNoIndex ? 0 : onnx_element_count(*value(id).sizes)));
      for (const int id : step.outputs) out = std::min(kMaxElements, out + onnx_element_count(*value(id).sizes));
      translation.parameters = {{"batch", 1}, {"rows", 1}, {"width", std::max(in, out)}, {"in", in}, {"out", out}};
    }
    const std::string reason =
        !step.failure_reason.empty() ? step.failure_reason : "an operation that was never measured";
    graph_.unknown_operations.push_back(
        {.layer = step.layer, .source = operator_name_of(step), .reason = reason, .has_lower_bound = has_lower_bound});
    emit_translated_operation(step, gradient, std::move(translation));
  }

  const Program& program_;
  Graph& graph_;
  Dtype real_dtype_;
  std::vector<bool> is_differentiable_;                              // by value: depends on a trained value
  std::vector<bool> is_trained_;                                     // by value: a weight that a step trains
  std::vector<std::optional<std::size_t>> first_operation_of_step_;  // by step: index of its first operation
};

}  // namespace

const ProgramStep* SizedStep::producer(std::size_t position) const {
  const int producer_step_index = has_input(position) ? input_value(position).producer_step : kNoIndex;
  return producer_step_index == kNoIndex ? nullptr : &program.steps[to_vector_index(producer_step_index)];
}

OperationParameters tensor_parameters(const Sizes& sizes) {
  const std::int64_t batch = sizes.size() >= 2 ? sizes[0] : 1;
  const std::int64_t rows = sizes.size() >= 3 ? sizes[1] : 1;
  return {{"batch", batch},
          {"rows", rows},
          {"width",
           product_of_sizes(sizes, std::min<std::size_t>(sizes.size() - (sizes.empty() ? 0 : 1), 2), sizes.size())}};
}

const Sizes& larger_tensor_sizes(const Sizes& left_sizes, const Sizes& right_sizes) {
  return onnx_element_count(left_sizes) >= onnx_element_count(right_sizes) ? left_sizes : right_sizes;
}

std::vector<TranslatedOperation> make_single_operation(Kind kind, std::string_view operation_form,
                                                       OperationParameters parameters) {
  return {{.kind = kind, .form = std::string(operation_form), .parameters = std::move(parameters)}};
}

void add_operations(const Program& program, const GraphOptions& options, Graph& graph) {
  OperationEmitter(program, options, graph).run();
}

}  // namespace joulemap::predict::onnx
