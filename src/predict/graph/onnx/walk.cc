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

constexpr int kDeepest = 16;
// Limits of visited nodes, copied nodes and loop iterations. Networks have thousands of nodes; nested functions of a
// small file could produce any number.
constexpr std::size_t kMaxNodes = 200'000;
constexpr std::size_t kMaxCopies = 20'000;
constexpr std::int64_t kMaxTurns = std::int64_t{1} << 32;

using Infos = std::unordered_map<std::string_view, const ValueInfo*>;

// Values by name in a graph, a branch or a function, and the enclosing scope, in which names are searched next.
struct Scope {
  std::unordered_map<std::string_view, int> names;
  const Scope* outer = nullptr;
  Infos infos;
  std::string layer;             // layer of the function's caller
  const Node* caller = nullptr;  // node whose attributes the function's nodes refer to
  const Function* function = nullptr;
  std::int64_t repeat = 1;
  int depth = 0;
};

class Walk {
 public:
  Walk(const Model& model, const InputSizes& inputs, const std::vector<Sizes>& sizes, const Program* before)
      : model_(model), inputs_(inputs), sizes_(sizes), before_(before) {
    for (const Function& function : model.functions)
      functions_.try_emplace({function.domain, function.name}, &function);
  }

  Result<Program> run() {
    Scope scope;
    add_weights(model_.graph, scope);
    for (std::size_t i = 0; i < inputs_.inputs.size(); ++i) {
      Value value{.name = inputs_.inputs[i]->name, .sizes = sizes_[i], .type = inputs_.inputs[i]->type};
      scope.names[value.name] = add(std::move(value));
      if (i == 0 && !sizes_[i].empty()) program_.batch = sizes_[i][0];
    }
    add_infos(model_.graph, scope);
    if (Status status = run_nodes(model_.graph.nodes, scope); !status) return status.error();
    for (const ValueInfo& output : model_.graph.outputs) {
      if (const int id = find(scope, output.name); id != kNone) program_.values[index(id)].is_output = true;
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
  static int find(const Scope& scope, std::string_view name) {
    for (const Scope* at = &scope; at != nullptr && !name.empty(); at = at->outer) {
      if (const auto found = at->names.find(name); found != at->names.end()) return found->second;
    }
    return kNone;
  }

  void add_weights(const GraphBody& body, Scope& scope) {
    for (const Tensor& tensor : body.weights) scope.names[tensor.name] = add_constant(tensor, true, tensor.name);
  }
  void add_infos(const GraphBody& body, Scope& scope) {
    for (const auto* const list : {&body.values, &body.outputs}) {
      for (const ValueInfo& info : *list) scope.infos.try_emplace(info.name, &info);
    }
  }
  // Adds a constant. Single numbers are settings; floating-point tensors with dimensions may be trained weights.
  int add_constant(const Tensor& tensor, bool may_be_trained, std::string_view name) {
    Value constant{
        .name = name, .sizes = tensor.sizes, .type = tensor.type, .numbers = tensor.numbers, .constant = true};
    if (!is_possible(tensor.sizes)) constant.sizes.reset();
    const int id = add(std::move(constant));
    if (may_be_trained && is_floating_point(tensor.type) && !tensor.sizes.empty()) value(id).weight = id;
    return id;
  }

  Status run_nodes(const std::vector<Node>& nodes, Scope& scope) {
    if (scope.depth > kDeepest) return invalid_node("functions or branches nested more than 16 deep");
    for (const Node& node : nodes) {
      if (++visited_ > kMaxNodes) return invalid_node("more than 200,000 nodes");
      if (program_.nodes.size() > kMaxCopies) return invalid_node("functions with more than 20,000 nested calls");
      if (Status status = run_node(node, scope); !status) return status;
    }
    return Done{};
  }

  Status run_node(const Node& stored, Scope& scope) {
    const Node& node = with_attributes(stored, scope);
    const auto function = functions_.find({node.domain, node.type});
    if (function != functions_.end()) return call(node, *function->second, scope);
    if (!node.domain.empty()) return add_step(node, scope);
    if (node.type == "Constant") return add_constant_node(node, scope);
    if (node.type == "Identity" || (node.type == "Dropout" && !is_training(node, scope))) return pass_on(node, scope);
    if (node.type == "If") return branch(node, scope);
    if (node.type == "Loop") return loop(node, scope);
    return add_step(node, scope);
  }

  const Node& with_attributes(const Node& node, const Scope& scope) {
    if (scope.caller == nullptr || !refers_to_caller(node)) return node;
    return program_.nodes.emplace_back(with_attributes_of(*scope.caller, *scope.function, node));
  }

  bool is_training(const Node& node, const Scope& scope) {
    const int mode = node.inputs.size() > 2 ? find(scope, node.inputs[2]) : kNone;
    return mode != kNone && value(mode).numbers && !value(mode).numbers->empty() && (*value(mode).numbers)[0] != 0;
  }

  Status add_constant_node(const Node& node, Scope& scope) {
    if (node.outputs.empty()) return Done{};
    const Tensor tensor = constant_tensor(node);
    // Large constants are weights that the exporter stored as nodes.
    const bool large = elements_of(tensor.sizes) > static_cast<std::int64_t>(kMaxStoredNumbers);
    scope.names[node.outputs[0]] = add_constant(tensor, large, node.outputs[0]);
    return Done{};
  }

  // Makes the output another name of the input. A weight with a second name counts as a separate weight, because
  // exporters merge equal weights.
  Status pass_on(const Node& node, Scope& scope) {
    const int from = node.inputs.empty() ? kNone : find(scope, node.inputs[0]);
    if (node.outputs.empty()) return Done{};
    if (from == kNone) return add_step(node, scope);
    int id = from;
    if (value(from).weight == from) {
      Value copy = value(from);
      copy.name = node.outputs[0];
      copy.consumers.clear();
      id = add(std::move(copy));
      value(id).weight = id;
    }
    scope.names[node.outputs[0]] = id;
    return Done{};
  }

  Scope inner(const Scope& scope) const {
    return {.outer = &scope,
            .layer = scope.layer,
            .caller = scope.caller,
            .function = scope.function,
            .repeat = scope.repeat,
            .depth = scope.depth + 1};
  }

  Status call(const Node& node, const Function& function, Scope& scope) {
    Scope body = inner(scope);
    body.outer = nullptr;  // a function sees only its inputs
    body.layer = module_path_of(node);
    body.caller = &node;
    body.function = &function;
    for (std::size_t i = 0; i < function.inputs.size() && i < node.inputs.size(); ++i) {
      if (const int id = find(scope, node.inputs[i]); id != kNone) body.names[function.inputs[i]] = id;
    }
    if (Status status = run_nodes(function.nodes, body); !status) return status;
    for (std::size_t i = 0; i < function.outputs.size() && i < node.outputs.size(); ++i) {
      if (const int id = find(body, function.outputs[i]); id != kNone) scope.names[node.outputs[i]] = id;
    }
    return Done{};
  }

  std::optional<double> number_of(const Scope& scope, const Node& node, std::size_t position) {
    const int id = position < node.inputs.size() ? find(scope, node.inputs[position]) : kNone;
    if (id == kNone || !value(id).numbers || value(id).numbers->size() != 1) return std::nullopt;
    return (*value(id).numbers)[0];
  }

  Status branch(const Node& node, Scope& scope) {
    const std::optional<double> condition = number_of(scope, node, 0);
    const Attribute* const taken = find_attribute(node, condition && *condition == 0 ? "else_branch" : "then_branch");
    if (!condition || taken == nullptr || taken->body.empty()) return add_step(node, scope);
    const GraphBody& body = taken->body[0];
    Scope branch_scope = inner(scope);
    add_weights(body, branch_scope);
    add_infos(body, branch_scope);
    if (Status status = run_nodes(body.nodes, branch_scope); !status) return status;
    for (std::size_t i = 0; i < body.outputs.size() && i < node.outputs.size(); ++i) {
      if (const int id = find(branch_scope, body.outputs[i].name); id != kNone) scope.names[node.outputs[i]] = id;
    }
    return Done{};
  }

  Status loop(const Node& node, Scope& scope) {
    const std::optional<double> turns = number_of(scope, node, 0);
    const bool may_end =
        node.inputs.size() > 1 && !node.inputs[1].empty() && number_of(scope, node, 1).value_or(0) == 0;
    const Attribute* const attribute = find_attribute(node, "body");
    const bool known =
        turns && *turns >= 1 && *turns * static_cast<double>(scope.repeat) < static_cast<double>(kMaxTurns);
    if (!known || may_end || attribute == nullptr || attribute->body.empty()) return add_step(node, scope);
    const GraphBody& body = attribute->body[0];
    Scope turn = inner(scope);
    turn.repeat = scope.repeat * static_cast<std::int64_t>(*turns);
    add_weights(body, turn);
    add_infos(body, turn);
    for (std::size_t i = 0; i < body.inputs.size(); ++i) {
      const int from = i < node.inputs.size() && i >= 2 ? find(scope, node.inputs[i]) : kNone;
      Value state{.name = body.inputs[i].name, .sizes = Sizes(), .type = i == 0 ? DataType::int64 : DataType::boolean};
      if (i >= 2) state.sizes = from == kNone ? std::nullopt : value(from).sizes;
      if (from != kNone) state.type = value(from).type;
      turn.names[body.inputs[i].name] = add(std::move(state));
    }
    if (Status status = run_nodes(body.nodes, turn); !status) return status;
    const std::size_t states = body.inputs.size() >= 2 ? body.inputs.size() - 2 : 0;
    for (std::size_t i = 0; i < node.outputs.size() && i + 1 < body.outputs.size(); ++i) {
      const int id = find(turn, body.outputs[i + 1].name);
      if (id == kNone) continue;
      Value result = value(id);
      result.numbers.reset();
      result.constant = false;
      if (i >= states && result.sizes) result.sizes->insert(result.sizes->begin(), static_cast<std::int64_t>(*turns));
      scope.names[node.outputs[i]] = add(std::move(result));
    }
    return Done{};
  }

  Status add_step(const Node& node, Scope& scope);
  std::string failure_of_inputs(const Node& node, const ProgramStep& step);
  void give_outputs(const Node& node, Scope& scope, ProgramStep& step, std::vector<Value> outputs);
  std::optional<Sizes> stored_sizes(const Scope& scope, std::string_view name) const;
  std::optional<FileBatchValues> at_file_batch(const Node& node) const;

  const Model& model_;
  const InputSizes& inputs_;
  const std::vector<Sizes>& sizes_;
  const Program* before_;
  std::map<std::pair<std::string_view, std::string_view>, const Function*> functions_;
  Program program_;
  std::size_t visited_ = 0;
};

std::optional<FileBatchValues> Walk::at_file_batch(const Node& node) const {
  const std::size_t number = program_.steps.size();
  if (before_ == nullptr || number >= before_->steps.size() || before_->steps[number].node != &node)
    return std::nullopt;
  FileBatchValues before;
  const auto pointer = [this](int id) { return id == kNone ? nullptr : &before_->values[index(id)]; };
  for (const int id : before_->steps[number].inputs) before.inputs.push_back(pointer(id));
  for (const int id : before_->steps[number].outputs) before.outputs.push_back(pointer(id));
  return before;
}

// Sizes of a value that the file declares; empty if there are none, or if another batch was requested.
std::optional<Sizes> Walk::stored_sizes(const Scope& scope, std::string_view name) const {
  const auto found = scope.infos.find(name);
  if (before_ != nullptr || found == scope.infos.end() || !found->second->dimensions) return std::nullopt;
  Sizes sizes;
  for (const Dimension& dimension : *found->second->dimensions) {
    const auto bound = inputs_.symbols.find(dimension.symbol);
    if (!dimension.size && (dimension.symbol.empty() || bound == inputs_.symbols.end())) return std::nullopt;
    sizes.push_back(dimension.size ? *dimension.size : bound->second);
  }
  if (!is_possible(sizes)) return std::nullopt;
  return sizes;
}

std::string Walk::failure_of_inputs(const Node& node, const ProgramStep& step) {
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    if (node.inputs[i].empty()) continue;
    if (step.inputs[i] == kNone) return "its input " + quoted(node.inputs[i]) + " has no source";
    if (!value(step.inputs[i]).sizes) return "the sizes of its input " + quoted(node.inputs[i]) + " are unknown";
  }
  return {};
}

Status Walk::add_step(const Node& node, Scope& scope) {
  ProgramStep step{.node = &node, .type = node.type, .layer = module_path_of(node), .repeat = scope.repeat};
  const bool has_path = !node.scopes.empty() || (!node.name.empty() && node.name[0] == '/');
  if (!scope.layer.empty() && !has_path) step.layer = scope.layer;
  for (const std::string_view name : node.inputs) step.inputs.push_back(find(scope, name));
  step.failure = failure_of_inputs(node, step);
  ShapeInference at{.node = node, .opset = model_.opset};
  for (const int id : step.inputs) at.inputs.push_back(id == kNone ? nullptr : &value(id));
  at.outputs.resize(node.outputs.size());
  const std::optional<FileBatchValues> before = at_file_batch(node);
  if (before) at.before = &*before;
  for (Value& output : at.outputs) output.type = at.has_input(0) ? at.inputs[0]->type : DataType::undefined;
  if (step.failure.empty() && !at.outputs.empty()) {
    const Status status = infer_shapes(at);
    if (!status && status.error().code == ErrorCode::unsupported) return Error(status.error()).with_context(step.layer);
    if (!status) step.failure = status.error().message;
  }
  for (const Value& output : at.outputs) {
    if (!output.sizes || is_possible(*output.sizes)) continue;
    return Error{
        ErrorCode::usage,
        fmt::format("{} returns {}, which is larger than any memory", quoted(step.layer), sizes_text(*output.sizes)),
        "use a smaller batch or smaller sizes"};
  }
  give_outputs(node, scope, step, std::move(at.outputs));
  program_.steps.push_back(std::move(step));
  return Done{};
}

bool is_random(std::string_view type) {
  return type.substr(0, 6) == "Random" || type == "Bernoulli" || type == "Dropout";
}

void Walk::give_outputs(const Node& node, Scope& scope, ProgramStep& step, std::vector<Value> outputs) {
  const int number = static_cast<int>(program_.steps.size());
  bool constant = !is_random(node.type) && step.failure.empty();
  bool has_weights = false;
  for (const int id : step.inputs) {
    if (id == kNone) continue;
    value(id).consumers.push_back(number);
    constant = constant && value(id).constant;
    has_weights = has_weights || value(id).weight != kNone;
  }
  // A weight with a changed layout is still a weight. Other values that depend on weights are not constant: training
  // changes them, so every run computes them.
  const bool layout = node.domain.empty() && is_layout_change(node.type);
  const bool passes_weight = constant && layout && has_entry(step.inputs, 0) && value(step.inputs[0]).weight != kNone;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Value& output = outputs[i];
    output.name = node.outputs[i];
    output.producer = number;
    output.constant = output.numbers.has_value() || (constant && (passes_weight || !has_weights));
    if (passes_weight) output.weight = value(step.inputs[0]).weight;
    if (!step.failure.empty())
      output = {
          .name = output.name, .sizes = stored_sizes(scope, output.name), .type = output.type, .producer = number};
    step.outputs.push_back(add(std::move(output)));
    scope.names[node.outputs[i]] = step.outputs.back();
  }
}

}  // namespace

Result<Program> build_program(const Model& model, const InputSizes& inputs, const std::vector<Sizes>& sizes,
                              const Program* before) {
  return Walk(model, inputs, sizes, before).run();
}

}  // namespace joulemap::predict::onnx
