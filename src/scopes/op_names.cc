// SPDX-License-Identifier: Apache-2.0
// unity: alone (cmake/unity_groups.py), because libjoulemap_capture.so links nothing else of this folder
#include "scopes/op_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <span>
#include <vector>

namespace joulemap::scopes {
namespace {

constexpr std::string_view kForwardPhase = "forward";
constexpr std::string_view kBackwardPhase = "backward";
constexpr std::string_view kRecomputePhase = "recompute";
constexpr std::string_view kOptimizerPhase = "optimizer";
constexpr std::string_view kLossPhase = "loss";

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Splits at '/', but not within parentheses: jit(a/b) is one part.
std::vector<std::string_view> split_at_slashes(std::string_view name) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    const char c = i < name.size() ? name[i] : '/';
    if (c == '(') ++depth;
    if (c == ')' && depth > 0) --depth;
    if (c != '/' || (depth > 0 && i < name.size())) continue;
    if (i > begin) parts.push_back(name.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

std::string join_with_dots(std::span<const std::string_view> parts) {
  std::string path;
  for (const std::string_view part : parts) {
    if (!path.empty()) path += '.';
    path += part;
  }
  return path;
}

// "Sub_30" -> "Sub"; "dense_1x" stays.
std::string_view remove_number_suffix(std::string_view name) {
  const std::size_t digits = name.find_last_not_of("0123456789");
  if (digits == std::string_view::npos || digits + 1 == name.size() || digits == 0 || name[digits] != '_') return name;
  return name.substr(0, digits);
}

// --- JAX

// Parts that transformations and control flow insert into names; no layer has such a name.
constexpr std::array<std::string_view, 15> kControlFlowNameParts = {"checkpoint",
                                                                    "rematted_computation",
                                                                    "remat",
                                                                    "while",
                                                                    "body",
                                                                    "cond",
                                                                    "scan",
                                                                    "closed_call",
                                                                    "core_call",
                                                                    "custom_jvp_call",
                                                                    "custom_vjp_call",
                                                                    "custom_vjp_call_jaxpr",
                                                                    "named_call",
                                                                    "shard_map",
                                                                    "pjit"};

// "branch_1_fun": a branch of jax.lax.cond or switch.
bool is_branch_name_part(std::string_view part) {
  constexpr std::string_view kPrefix = "branch_";
  constexpr std::string_view kSuffix = "_fun";
  if (!part.starts_with(kPrefix) || !part.ends_with(kSuffix) || part.size() <= kPrefix.size() + kSuffix.size())
    return false;
  const std::string_view number = part.substr(kPrefix.size(), part.size() - kPrefix.size() - kSuffix.size());
  return number.find_first_not_of("0123456789") == std::string_view::npos;
}

struct ParsedXlaName {
  std::vector<std::string_view> name_scopes;  // of the last repetition of the path
  std::string_view differentiated_function;   // the differentiated function, in the parentheses of jvp()
  std::string_view op;
  bool is_differentiated = false;
  bool is_transposed = false;
  bool is_recomputed = false;
};

// transpose(jvp(Net)) -> Net; records the transformations around it in `name`.
std::string_view unwrap_transformations(std::string_view part, ParsedXlaName& name, bool& is_derivative) {
  while (part.ends_with(')')) {
    const std::size_t bracket = part.find('(');
    if (bracket == std::string_view::npos) return part;
    const std::string_view transformation = part.substr(0, bracket);
    if (transformation == "transpose") name.is_transposed = is_derivative = true;
    if (transformation == "jvp") name.is_differentiated = is_derivative = true;
    if (transformation == "rematted_computation") name.is_recomputed = true;
    const bool is_function = transformation == "jit" || transformation == "pjit";
    part = is_function ? std::string_view() : part.substr(bracket + 1, part.size() - bracket - 2);
  }
  return part;
}

// A derivative of a derivative repeats the path from its start; only the last repetition is used.
ParsedXlaName parse_xla_name(std::string_view op_name) {
  ParsedXlaName name;
  const std::vector<std::string_view> parts = split_at_slashes(op_name);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == "rematted_computation") name.is_recomputed = true;
    bool is_derivative = false;
    const std::string_view unwrapped_name = unwrap_transformations(parts[i], name, is_derivative);
    if (is_derivative) {
      name.name_scopes.clear();
      name.differentiated_function = unwrapped_name;
      continue;
    }
    if (unwrapped_name.empty() || is_one_of(kControlFlowNameParts, unwrapped_name) ||
        is_branch_name_part(unwrapped_name))
      continue;
    if (i + 1 == parts.size()) {
      name.op = unwrapped_name;
    } else {
      name.name_scopes.push_back(unwrapped_name);
    }
  }
  return name;
}

std::string_view phase_of_xla_op(const ParsedXlaName& name, bool is_training_program) {
  if (name.is_recomputed) return kRecomputePhase;
  if (name.is_transposed) return kBackwardPhase;
  return name.is_differentiated || !is_training_program ? kForwardPhase : kOptimizerPhase;
}

// --- TensorFlow

constexpr std::array<std::string_view, 22> kOptimizerNames = {
    "adam", "adamw", "sgd", "rmsprop", "adagrad", "adadelta", "adamax", "nadam", "ftrl", "lion", "lamb", "adafactor",
    "muon", "loss_scale_optimizer",
    // TensorFlow 1.
    "Adam", "GradientDescent", "Momentum", "RMSProp", "Adagrad", "AdagradDA", "Adadelta", "Ftrl"};
// Prefixes from function calls and graph optimizations.
constexpr std::array<std::string_view, 5> kCallOpNames = {"StatefulPartitionedCall", "PartitionedCall",
                                                          "ArithmeticOptimizer", "ConstantFolding", "LayoutOptimizer"};
// Scopes that TensorFlow's own functions open within a layer.
constexpr std::array<std::string_view, 12> kFunctionScopeNames = {
    "moments", "batchnorm", "stateless_dropout", "dropout", "transpose", "einsum", "stateless_random_uniform", "mul",
    "add",     "sub",       "convolution",       "range"};

bool is_call_name_part(std::string_view part) {
  return is_one_of(kCallOpNames, remove_number_suffix(part)) || part.starts_with("ArithmeticOptimizer");
}

bool is_camel_case(std::string_view part) { return std::isupper(static_cast<unsigned char>(part.front())) != 0; }

// Types of operations contain no underscore; layers of TF-Slim do: Conv2d_1a_3x3.
bool is_tf_slim_layer(std::string_view part) {
  return is_camel_case(part) && remove_number_suffix(part).find('_') != std::string_view::npos;
}

// Operations are CamelCase; layers are not, unless the user named one so.
bool is_operation_name_part(std::string_view part) {
  return (is_camel_case(part) && !is_tf_slim_layer(part)) || is_one_of(kFunctionScopeNames, remove_number_suffix(part));
}

// Whether the only scope of an operation is one that TensorFlow opened for it: MatMul/ReadVariableOp, or of its
// gradient Mean/Tile, but not Encoder/MatMul, or of its gradient Encoder/ReluGrad.
bool is_operation_scope(std::string_view part, std::string_view op, std::string_view phase) {
  if (!is_camel_case(part) || is_tf_slim_layer(part)) return false;
  part = remove_number_suffix(part);
  op = remove_number_suffix(op);
  if (op == part || op == "ReadVariableOp") return true;
  constexpr std::string_view kGradOpSuffix = "Grad";
  const bool is_gradient_op_of_layer =
      op.ends_with(kGradOpSuffix) && op.substr(0, op.size() - kGradOpSuffix.size()) != part;
  return phase == kBackwardPhase && !is_gradient_op_of_layer;
}

// Without a table: the first part is the model; the following parts are its layers, up to the first operation.
OpScope scope_from_name_parts(std::span<const std::string_view> parts, std::string_view phase) {
  OpScope scope;
  if (parts.size() < 2) return scope;
  const std::string_view root_name = remove_number_suffix(parts.front());
  if (is_one_of(kOptimizerNames, root_name)) return {std::string(kOptimizerPhase), std::string(root_name), {}};
  if (root_name == "compile_loss")
    return {std::string(phase == kBackwardPhase ? kBackwardPhase : kLossPhase), std::string(parts[1]), {}};
  if (root_name == kLossPhase)
    return {std::string(phase == kBackwardPhase ? kBackwardPhase : kLossPhase), std::string(kLossPhase), {}};
  scope.phase = phase;
  if (parts.size() == 2 && is_operation_scope(parts[0], parts[1], phase)) return scope;
  std::size_t end = 1;
  while (end + 1 < parts.size() && !is_operation_name_part(parts[end])) ++end;
  for (std::size_t i = end; i + 1 < parts.size(); ++i) {
    if (is_tf_slim_layer(parts[i])) end = i + 1;
  }
  scope.module = end > 1 ? join_with_dots(parts.subspan(1, end - 1)) : std::string(parts.front());
  return scope;
}

// The innermost enclosing scope of the operation that the table contains; null: none.
const NameScope* find_name_scope(std::string_view name, const NameScopes& name_scopes) {
  while (!name.empty()) {
    const auto matching_scope = name_scopes.find(name);
    if (matching_scope != name_scopes.end()) return &matching_scope->second;
    const std::size_t slash = name.rfind('/');
    name = slash == std::string_view::npos ? std::string_view() : name.substr(0, slash);
  }
  return nullptr;
}

std::string join_with_slashes(std::span<const std::string_view> parts) {
  std::string name;
  for (const std::string_view part : parts) {
    if (!name.empty()) name += '/';
    name += part;
  }
  return name;
}

// The name of the operation whose gradient this operation computes; nullopt if it computes no gradient. TensorFlow 2
// puts gradient_tape in front of that name. TensorFlow 1 opens a scope, possibly within a scope of the program:
// gradients/net/dense/MatMul_grad/Reshape belongs to net/dense/MatMul. A tape over a tf.function writes both.
std::optional<std::vector<std::string_view>> find_differentiated_operation(std::span<const std::string_view> parts) {
  const bool is_gradient_tape = !parts.empty() && parts.front() == "gradient_tape";
  while (!parts.empty() && parts.front() == "gradient_tape") parts = parts.subspan(1);
  const auto scope = std::find_if(parts.begin(), parts.end(),
                                  [](std::string_view part) { return remove_number_suffix(part) == "gradients"; });
  if (scope == parts.end())
    return is_gradient_tape ? std::optional(std::vector(parts.begin(), parts.end())) : std::nullopt;
  std::vector<std::string_view> operation_parts(scope + 1, parts.end());
  constexpr std::string_view kGradientScopeSuffix = "_grad";
  const auto op = std::find_if(operation_parts.begin(), operation_parts.end(),
                               [&](std::string_view part) { return part.ends_with(kGradientScopeSuffix); });
  if (op == operation_parts.end()) return operation_parts;
  op->remove_suffix(kGradientScopeSuffix.size());
  operation_parts.erase(op + 1, operation_parts.end());
  return operation_parts;
}

// TensorFlow 1 updates a variable in the scope of the optimizer: Adam/update_net/dense/kernel/ResourceApplyAdam.
// Returns nullopt for names of any other form.
std::optional<OpScope> scope_of_optimizer_update(std::span<const std::string_view> parts) {
  constexpr std::string_view kUpdatePrefix = "update_";
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (!parts[i].starts_with(kUpdatePrefix) || !is_one_of(kOptimizerNames, remove_number_suffix(parts[i - 1])))
      continue;
    std::vector<std::string_view> variable(parts.begin() + static_cast<std::ptrdiff_t>(i), parts.end());
    variable.front().remove_prefix(kUpdatePrefix.size());
    const auto op = std::find_if(variable.begin() + 1, variable.end(), [](std::string_view part) {
      return part.starts_with("Resource") || part.starts_with("Apply") || part.starts_with("SparseApply");
    });
    variable.erase(op == variable.end() && variable.size() > 1 ? op - 1 : op, variable.end());
    variable.pop_back();  // "kernel"
    if (variable.size() > 1) variable.erase(variable.begin());
    const std::string module =
        variable.empty() ? std::string(remove_number_suffix(parts[i - 1])) : join_with_dots(variable);
    return OpScope{std::string(kOptimizerPhase), module, {}};
  }
  return std::nullopt;
}

OpScope scope_from_table_or_name(std::span<const std::string_view> parts, const NameScopes& name_scopes) {
  if (const NameScope* const table_scope = find_name_scope(join_with_slashes(parts), name_scopes)) {
    return {table_scope->phase.empty() ? std::string(kForwardPhase) : table_scope->phase, table_scope->module, {}};
  }
  if (std::optional<OpScope> update = scope_of_optimizer_update(parts)) return *std::move(update);
  const std::optional<std::vector<std::string_view>> operation_parts = find_differentiated_operation(parts);
  if (!operation_parts) return scope_from_name_parts(parts, kForwardPhase);
  if (const NameScope* const scope = find_name_scope(join_with_slashes(*operation_parts), name_scopes)) {
    return {std::string(kBackwardPhase), scope->module, {}};
  }
  OpScope scope = scope_from_name_parts(*operation_parts, kBackwardPhase);
  scope.phase = kBackwardPhase;
  return scope;
}

}  // namespace

std::string remove_call_name_parts(std::string_view name) {
  std::vector<std::string_view> parts = split_at_slashes(name);
  std::erase_if(parts, is_call_name_part);
  return join_with_slashes(parts);
}

OpScope scope_of_tensorflow_op(std::string_view node, std::string_view type, const NameScopes& name_scopes) {
  std::vector<std::string_view> parts = split_at_slashes(node);
  std::erase_if(parts, is_call_name_part);
  if (parts.empty()) return {{}, {}, std::string(type)};
  OpScope scope = scope_from_table_or_name(parts, name_scopes);
  // The gradient tape adds gradients where paths join (AddN); that operation has no layer in its name.
  if (scope.phase.empty() && remove_number_suffix(parts.front()) == "AddN") scope.phase = kBackwardPhase;
  scope.op = type.empty() ? remove_number_suffix(parts.back()) : type;
  return scope;
}

bool is_gradient_op(std::string_view op_name) { return op_name.find("transpose(jvp(") != std::string_view::npos; }

OpScope scope_of_xla_op(std::string_view op_name, bool is_training_program) {
  const ParsedXlaName name = parse_xla_name(op_name);
  OpScope scope{.op = std::string(name.op)};
  // A name without scopes has lost them in the compiler: phase and module are unknown.
  if (name.name_scopes.empty() && name.differentiated_function.empty() && !name.is_differentiated &&
      !name.is_transposed && op_name.find('/') == std::string_view::npos) {
    return scope;
  }
  scope.phase = phase_of_xla_op(name, is_training_program);
  std::span<const std::string_view> name_scopes = name.name_scopes;
  // Without gradients the first scope is the model itself and is left out. With gradients the model is in the
  // parentheses of jvp(), not among the scopes.
  if (scope.phase == kForwardPhase && !name.is_differentiated && name_scopes.size() > 1)
    name_scopes = name_scopes.subspan(1);
  scope.module = name_scopes.empty() ? std::string(name.differentiated_function) : join_with_dots(name_scopes);
  return scope;
}

// PyTorch's exporters name a submodule by its path from the root or by its own name: /layer1/layer1.0/conv1/Conv is
// layer1.0.conv1.
OpScope scope_of_onnx_node(std::string_view node, std::string_view type) {
  const std::vector<std::string_view> parts = split_at_slashes(node);
  OpScope scope{.phase = std::string(kForwardPhase), .op = std::string(type)};
  std::string path;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    const std::string_view part = parts[i];
    const bool repeats_path = part.starts_with(path) && part.size() > path.size() && part[path.size()] == '.';
    if (path.empty() || repeats_path) {
      path = part;
    } else {
      const std::size_t dot_position = path.rfind('.');
      const std::string_view last_element =
          dot_position == std::string::npos ? std::string_view(path) : std::string_view(path).substr(dot_position + 1);
      const bool repeats_last_element =
          part.starts_with(last_element) && part.size() > last_element.size() && part[last_element.size()] == '.';
      path += '.';
      path += repeats_last_element ? part.substr(last_element.size() + 1) : part;
    }
  }
  scope.module = path;
  if (scope.op.empty() && !parts.empty()) scope.op = remove_number_suffix(parts.back());
  return scope;
}

}  // namespace joulemap::scopes
