// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/onnx/walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "predict/graph/onnx/caller_attributes.h"
#include "predict/graph/onnx/layer_names.h"
#include "predict/graph/onnx/shapes.h"

namespace joulemap::predict::onnx {
namespace {

constexpr int kMaxCallDepth = 16;
// Limits of visited nodes, copied nodes and loop iterations. Networks have thousands of nodes; nested functions of a
// small file could produce any number.
constexpr std::size_t kMaxVisitedNodes = 200'000;
constexpr std::size_t kMaxCopiedNodes = 20'000;
constexpr std::int64_t kMaxLoopIterations = std::int64_t{1} << 32;

using ValueInfosByName = std::unordered_map<std::string_view, const ValueInfo*>;

// Values by name in a graph, a branch or a function, and the enclosing scope, in which names are searched next.
struct NameScope {
  std::unordered_map<std::string_view, int> value_by_name;
  const NameScope* outer_scope = nullptr;
  ValueInfosByName value_infos;
  std::string layer;                  // layer of the function's caller
  const Node* caller_node = nullptr;  // node whose attributes the function's nodes refer to
  const Function* function = nullptr;
  std::int64_t repeat_count = 1;
  int depth = 0;
};

class GraphWalk {
 public:
  GraphWalk(const Model& model, const InputSizes& inputs, const std::vector<Sizes>& sizes,
            const Program* program_at_file_batch)
      : model_(model), inputs_(inputs), input_sizes_(sizes), program_at_file_batch_(program_at_file_batch) {
    for (const Function& function : model.functions)
      functions_.try_emplace({function.operator_domain, function.name}, &function);
  }

  Result<Program> run() {
    NameScope scope;
    add_weights(model_.graph, scope);
    for (std::size_t i = 0; i < inputs_.input_infos.size(); ++i) {
      Value value{.name = inputs_.input_infos[i]->name, .sizes = input_sizes_[i], .type = inputs_.input_infos[i]->type};
      scope.value_by_name[value.name] = add(std::move(value));
      if (i == 0 && !input_sizes_[i].empty()) program_.batch_size = input_sizes_[i][0];
    }
    add_value_infos(model_.graph, scope);
    if (Status status = visit_nodes(model_.graph.nodes, scope); !status) return status.error();
    for (const ValueInfo& output : model_.graph.outputs) {
      if (const int id = find_value_index(scope, output.name); id != kNoIndex)
        program_.values[index(id)].is_output = true;
    }
    return std::move(program_);
  }

 private:
  static std::size_t index(int id) { return static_cast<std::size_t>(id); }
  Value& value(int id) { return program_.values[index(id)]; }
  int add(Value value) {
    program_.values.push_back(std::move(value));
    return static_cast<int>(program_.values.size()) - 1;
  }
  static int find_value_index(const NameScope& scope, std::string_view name) {
    for (const NameScope* current_scope = &scope; current_scope != nullptr && !name.empty();
         current_scope = current_scope->outer_scope) {
      if (const auto value_entry = current_scope->value_by_name.find(name);
          value_entry != current_scope->value_by_name.end())
        return value_entry->second;
    }
    return kNoIndex;
  }

  void add_weights(const GraphBody& body, NameScope& scope) {
    for (const Tensor& tensor : body.initializers)
      scope.value_by_name[tensor.name] = add_constant(tensor, true, tensor.name);
  }
  void add_value_infos(const GraphBody& body, NameScope& scope) {
    for (const auto* const info_list : {&body.value_infos, &body.outputs}) {
      for (const ValueInfo& info : *info_list) scope.value_infos.try_emplace(info.name, &info);
    }
  }
  // Adds a constant. Single numbers are settings; floating-point tensors with dimensions may be trained weights.
  int add_constant(const Tensor& tensor, bool may_be_trained, std::string_view name) {
    Value constant{.name = name,
                   .sizes = tensor.sizes,
                   .type = tensor.type,
                   .constant_values = tensor.stored_values,
                   .is_constant = true};
    if (!are_sizes_possible(tensor.sizes)) constant.sizes.reset();
    const int id = add(std::move(constant));
    if (may_be_trained && is_floating_point(tensor.type) && !tensor.sizes.empty()) value(id).source_weight = id;
    return id;
  }

  Status visit_nodes(const std::vector<Node>& nodes, NameScope& scope) {
    if (scope.depth > kMaxCallDepth) return invalid_node("functions or branches nested more than 16 deep");
    for (const Node& node : nodes) {
      if (++visited_node_count_ > kMaxVisitedNodes) return invalid_node("more than 200,000 nodes");
      if (program_.copied_nodes.size() > kMaxCopiedNodes)
        return invalid_node("functions with more than 20,000 nested calls");
      if (Status status = visit_node(node, scope); !status) return status;
    }
    return Done{};
  }

  Status visit_node(const Node& stored_node, NameScope& scope) {
    const Node& node = resolve_caller_attributes(stored_node, scope);
    const auto function = functions_.find({node.operator_domain, node.operator_type});
    if (function != functions_.end()) return inline_function_call(node, *function->second, scope);
    if (!node.operator_domain.empty()) return add_step(node, scope);
    if (node.operator_type == "Constant") return add_constant_node(node, scope);
    if (node.operator_type == "Identity" || (node.operator_type == "Dropout" && !is_training(node, scope)))
      return alias_output_to_input(node, scope);
    if (node.operator_type == "If") return inline_if_branch(node, scope);
    if (node.operator_type == "Loop") return inline_loop_body(node, scope);
    return add_step(node, scope);
  }

  const Node& resolve_caller_attributes(const Node& node, const NameScope& scope) {
    if (scope.caller_node == nullptr || !refers_to_caller_attribute(node)) return node;
    return program_.copied_nodes.emplace_back(copy_caller_attributes(*scope.caller_node, *scope.function, node));
  }

  bool is_training(const Node& node, const NameScope& scope) {
    const int mode = node.inputs.size() > 2 ? find_value_index(scope, node.inputs[2]) : kNoIndex;
    return mode != kNoIndex && value(mode).constant_values && !value(mode).constant_values->empty() &&
           (*value(mode).constant_values)[0] != 0;
  }

  Status add_constant_node(const Node& node, NameScope& scope) {
    if (node.outputs.empty()) return Done{};
    const Tensor tensor = constant_tensor(node);
    // Large constants are weights that the exporter stored as nodes.
    const bool is_large_constant =
        onnx_element_count(tensor.sizes) > static_cast<std::int64_t>(kMaxStoredConstantValues);
    scope.value_by_name[node.outputs[0]] = add_constant(tensor, is_large_constant, node.outputs[0]);
    return Done{};
  }

  // Makes the output another name of the input. A weight with a second name counts as a separate weight, because
  // exporters merge equal weights.
  Status alias_output_to_input(const Node& node, NameScope& scope) {
    const int source_value = node.inputs.empty() ? kNoIndex : find_value_index(scope, node.inputs[0]);
    if (node.outputs.empty()) return Done{};
    if (source_value == kNoIndex) return add_step(node, scope);
    int id = source_value;
    if (value(source_value).source_weight == source_value) {
      Value copy = value(source_value);
      copy.name = node.outputs[0];
      copy.consumer_steps.clear();
      id = add(std::move(copy));
      value(id).source_weight = id;
    }
    scope.value_by_name[node.outputs[0]] = id;
    return Done{};
  }

  NameScope make_inner_scope(const NameScope& scope) const {
    return {.outer_scope = &scope,
            .layer = scope.layer,
            .caller_node = scope.caller_node,
            .function = scope.function,
            .repeat_count = scope.repeat_count,
            .depth = scope.depth + 1};
  }

  Status inline_function_call(const Node& node, const Function& function, NameScope& scope) {
    NameScope body = make_inner_scope(scope);
    body.outer_scope = nullptr;  // a function sees only its inputs
    body.layer = module_path_of(node);
    body.caller_node = &node;
    body.function = &function;
    for (std::size_t i = 0; i < function.inputs.size() && i < node.inputs.size(); ++i) {
      if (const int id = find_value_index(scope, node.inputs[i]); id != kNoIndex)
        body.value_by_name[function.inputs[i]] = id;
    }
    if (Status status = visit_nodes(function.nodes, body); !status) return status;
    for (std::size_t i = 0; i < function.outputs.size() && i < node.outputs.size(); ++i) {
      if (const int id = find_value_index(body, function.outputs[i]); id != kNoIndex)
        scope.value_by_name[node.outputs[i]] = id;
    }
    return Done{};
  }

  std::optional<double> constant_scalar_input(const NameScope& scope, const Node& node, std::size_t position) {
    const int id = position < node.inputs.size() ? find_value_index(scope, node.inputs[position]) : kNoIndex;
    if (id == kNoIndex || !value(id).constant_values || value(id).constant_values->size() != 1) return std::nullopt;
    return (*value(id).constant_values)[0];
  }

  Status inline_if_branch(const Node& node, NameScope& scope) {
    const std::optional<double> condition = constant_scalar_input(scope, node, 0);
    const Attribute* const taken_branch =
        find_attribute(node, condition && *condition == 0 ? "else_branch" : "then_branch");
    if (!condition || taken_branch == nullptr || taken_branch->subgraph.empty()) return add_step(node, scope);
    const GraphBody& body = taken_branch->subgraph[0];
    NameScope branch_scope = make_inner_scope(scope);
    add_weights(body, branch_scope);
    add_value_infos(body, branch_scope);
    if (Status status = visit_nodes(body.nodes, branch_scope); !status) return status;
    for (std::size_t i = 0; i < body.outputs.size() && i < node.outputs.size(); ++i) {
      if (const int id = find_value_index(branch_scope, body.outputs[i].name); id != kNoIndex)
        scope.value_by_name[node.outputs[i]] = id;
    }
    return Done{};
  }

  Status inline_loop_body(const Node& node, NameScope& scope) {
    const std::optional<double> iteration_count = constant_scalar_input(scope, node, 0);
    const bool may_end_early =
        node.inputs.size() > 1 && !node.inputs[1].empty() && constant_scalar_input(scope, node, 1).value_or(0) == 0;
    const Attribute* const attribute = find_attribute(node, "body");
    const bool has_known_count =
        iteration_count && *iteration_count >= 1 &&
        *iteration_count * static_cast<double>(scope.repeat_count) < static_cast<double>(kMaxLoopIterations);
    if (!has_known_count || may_end_early || attribute == nullptr || attribute->subgraph.empty())
      return add_step(node, scope);
    const GraphBody& body = attribute->subgraph[0];
    NameScope iteration_scope = make_inner_scope(scope);
    iteration_scope.repeat_count = scope.repeat_count * static_cast<std::int64_t>(*iteration_count);
    add_weights(body, iteration_scope);
    add_value_infos(body, iteration_scope);
    for (std::size_t i = 0; i < body.inputs.size(); ++i) {
      const int initial_state_value =
          i < node.inputs.size() && i >= 2 ? find_value_index(scope, node.inputs[i]) : kNoIndex;
      Value state{.name = body.inputs[i].name, .sizes = Sizes(), .type = i == 0 ? DataType::int64 : DataType::boolean};
      if (i >= 2) state.sizes = initial_state_value == kNoIndex ? std::nullopt : value(initial_state_value).sizes;
      if (initial_state_value != kNoIndex) state.type = value(initial_state_value).type;
      iteration_scope.value_by_name[body.inputs[i].name] = add(std::move(state));
    }
    if (Status status = visit_nodes(body.nodes, iteration_scope); !status) return status;
    const std::size_t loop_state_count = body.inputs.size() >= 2 ? body.inputs.size() - 2 : 0;
    for (std::size_t i = 0; i < node.outputs.size() && i + 1 < body.outputs.size(); ++i) {
      const int id = find_value_index(iteration_scope, body.outputs[i + 1].name);
      if (id == kNoIndex) continue;
      Value result = value(id);
      result.constant_values.reset();
      result.is_constant = false;
      if (i >= loop_state_count && result.sizes)
        result.sizes->insert(result.sizes->begin(), static_cast<std::int64_t>(*iteration_count));
      scope.value_by_name[node.outputs[i]] = add(std::move(result));
    }
    return Done{};
  }

  Status add_step(const Node& node, NameScope& scope);
  std::string inherit_input_failure(const Node& node, const ProgramStep& step);
  void add_output_values(const Node& node, NameScope& scope, ProgramStep& step, std::vector<Value> outputs);
  std::optional<Sizes> declared_value_sizes(const NameScope& scope, std::string_view name) const;
  std::optional<FileBatchValues> values_at_file_batch(const Node& node) const;

  const Model& model_;
  const InputSizes& inputs_;
  const std::vector<Sizes>& input_sizes_;
  const Program* program_at_file_batch_;
  std::map<std::pair<std::string_view, std::string_view>, const Function*> functions_;
  Program program_;
  std::size_t visited_node_count_ = 0;
};

std::optional<FileBatchValues> GraphWalk::values_at_file_batch(const Node& node) const {
  const std::size_t number = program_.steps.size();
  if (program_at_file_batch_ == nullptr || number >= program_at_file_batch_->steps.size() ||
      program_at_file_batch_->steps[number].node != &node)
    return std::nullopt;
  FileBatchValues file_batch_values;
  const auto find_file_batch_value = [this](int id) {
    return id == kNoIndex ? nullptr : &program_at_file_batch_->values[index(id)];
  };
  for (const int id : program_at_file_batch_->steps[number].inputs)
    file_batch_values.inputs.push_back(find_file_batch_value(id));
  for (const int id : program_at_file_batch_->steps[number].outputs)
    file_batch_values.outputs.push_back(find_file_batch_value(id));
  return file_batch_values;
}

// Sizes of a value that the file declares; empty if there are none, or if another batch was requested.
std::optional<Sizes> GraphWalk::declared_value_sizes(const NameScope& scope, std::string_view name) const {
  const auto info_entry = scope.value_infos.find(name);
  if (program_at_file_batch_ != nullptr || info_entry == scope.value_infos.end() || !info_entry->second->dimensions)
    return std::nullopt;
  Sizes sizes;
  for (const Dimension& dimension : *info_entry->second->dimensions) {
    const auto bound = inputs_.size_by_symbol.find(dimension.size_symbol);
    if (!dimension.size && (dimension.size_symbol.empty() || bound == inputs_.size_by_symbol.end()))
      return std::nullopt;
    sizes.push_back(dimension.size ? *dimension.size : bound->second);
  }
  if (!are_sizes_possible(sizes)) return std::nullopt;
  return sizes;
}

std::string GraphWalk::inherit_input_failure(const Node& node, const ProgramStep& step) {
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    if (node.inputs[i].empty()) continue;
    if (step.inputs[i] == kNoIndex) return "its input " + quoted(node.inputs[i]) + " has no source";
    if (!value(step.inputs[i]).sizes) return "the sizes of its input " + quoted(node.inputs[i]) + " are unknown";
  }
  return {};
}

Status GraphWalk::add_step(const Node& node, NameScope& scope) {
  ProgramStep step{
      .node = &node, .type = node.operator_type, .layer = module_path_of(node), .repeat_count = scope.repeat_count};
  const bool has_path = !node.name_scopes.empty() || (!node.name.empty() && node.name[0] == '/');
  if (!scope.layer.empty() && !has_path) step.layer = scope.layer;
  for (const std::string_view name : node.inputs) step.inputs.push_back(find_value_index(scope, name));
  step.failure_reason = inherit_input_failure(node, step);
  ShapeInference shape_inference{.node = node, .opset_version = model_.opset_version};
  for (const int id : step.inputs) shape_inference.inputs.push_back(id == kNoIndex ? nullptr : &value(id));
  shape_inference.outputs.resize(node.outputs.size());
  const std::optional<FileBatchValues> file_batch_values = values_at_file_batch(node);
  if (file_batch_values) shape_inference.values_at_file_batch = &*file_batch_values;
  for (Value& output : shape_inference.outputs)
    output.type = shape_inference.has_input(0) ? shape_inference.inputs[0]->type : DataType::undefined;
  if (step.failure_reason.empty() && !shape_inference.outputs.empty()) {
    const Status status = infer_shapes(shape_inference);
    if (!status && status.error().code == ErrorCode::unsupported) return Error(status.error()).with_context(step.layer);
    if (!status) step.failure_reason = status.error().message;
  }
  for (const Value& output : shape_inference.outputs) {
    if (!output.sizes || are_sizes_possible(*output.sizes)) continue;
    return Error{
        ErrorCode::usage,
        fmt::format("{} returns {}, which is larger than any memory", quoted(step.layer), sizes_text(*output.sizes)),
        "use a smaller batch or smaller sizes"};
  }
  add_output_values(node, scope, step, std::move(shape_inference.outputs));
  program_.steps.push_back(std::move(step));
  return Done{};
}

bool is_random_node_type(std::string_view type) {
  return type.substr(0, 6) == "Random" || type == "Bernoulli" || type == "Dropout";
}

void GraphWalk::add_output_values(const Node& node, NameScope& scope, ProgramStep& step, std::vector<Value> outputs) {
  const int number = static_cast<int>(program_.steps.size());
  bool constant = !is_random_node_type(node.operator_type) && step.failure_reason.empty();
  bool has_weights = false;
  for (const int id : step.inputs) {
    if (id == kNoIndex) continue;
    value(id).consumer_steps.push_back(number);
    constant = constant && value(id).is_constant;
    has_weights = has_weights || value(id).source_weight != kNoIndex;
  }
  // A weight with a changed layout is still a weight. Other values that depend on weights are not constant: training
  // changes them, so every run computes them.
  const bool layout = node.operator_domain.empty() && is_layout_change(node.operator_type);
  const bool passes_weight_through =
      constant && layout && has_value_at(step.inputs, 0) && value(step.inputs[0]).source_weight != kNoIndex;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Value& output = outputs[i];
    output.name = node.outputs[i];
    output.producer_step = number;
    output.is_constant = output.constant_values.has_value() || (constant && (passes_weight_through || !has_weights));
    if (passes_weight_through) output.source_weight = value(step.inputs[0]).source_weight;
    if (!step.failure_reason.empty())
      output = {.name = output.name,
                .sizes = declared_value_sizes(scope, output.name),
                .type = output.type,
                .producer_step = number};
    step.outputs.push_back(add(std::move(output)));
    scope.value_by_name[node.outputs[i]] = step.outputs.back();
  }
}

}  // namespace

Result<Program> build_program(const Model& model, const InputSizes& inputs, const std::vector<Sizes>& sizes,
                              const Program* program_at_file_batch) {
  return GraphWalk(model, inputs, sizes, program_at_file_batch).run();
}

}  // namespace joulemap::predict::onnx
