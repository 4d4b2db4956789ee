// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_operations.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "ingest/xplane/graph_kernels.h"
#include "scopes/tensor_text.h"

namespace joulemap::ingest {
namespace {

constexpr std::string_view kDataStagePrefix = "Iterator::";
constexpr std::string_view kInputPipelinePhase = "dataloader";
constexpr std::string_view kInputLayerName = "tf.data";
// Replaces the module in the key of an operation that is not an instruction of a program.
constexpr std::string_view kNodeKeyModule = "node", kInputPipelineKeyModule = "input";
// A callback of a stream looks like a node, "ThenExecuteCallback:Name", but only waits.
constexpr std::string_view kStreamCallbackPrefix = "ThenExecuteCallback:";
// Prefix of the names of CUDA graphs, which XLA writes instead of the instructions of their kernels.
constexpr std::string_view kCommandBufferPrefix = "command_buffer";
// Part of the type of an operation that TensorFlow made of several: _FusedMatMul, _MklNativeFusedMatMul.
constexpr std::string_view kFusedTypePart = "Fused";
constexpr std::string_view kOptimizerPhase = "optimizer";

// Stages that only pass on what another thread produces: their time is waiting.
bool is_waiting_stage(std::string_view stage) { return stage == "Prefetch" || stage == "Root" || stage == "Model"; }

template <class Value>
const Value* find_value(const std::map<std::string, Value, std::less<>>& table, std::string_view key) {
  const auto table_entry = table.find(key);
  return table_entry == table.end() ? nullptr : &table_entry->second;
}

// Whether the type of an event is a function, "__inference_train_step_95": the event only encloses its operations.
bool is_function_type(std::string_view type) {
  return type.starts_with("__inference_") || type.starts_with("__forward_") || type.starts_with("__backward_");
}

XOperation make_input_pipeline_operation(std::string_view op) {
  return {std::string(op), {std::string(kInputPipelinePhase), std::string(kInputLayerName), std::string(op)}};
}

// A kernel has the name of its instruction with '_' where C requires it: gemm_fusion_dot_8 for gemm_fusion_dot.8.
std::string instruction_name_of_kernel(std::string_view kernel) {
  std::string name(kernel);
  const std::size_t digits = name.find_last_not_of("0123456789");
  if (digits != std::string::npos && digits + 1 < name.size() && name[digits] == '_') name[digits] = '.';
  return name;
}

}  // namespace

std::size_t XPlaneOperations::KeyHash::operator()(const Key& key) const {
  const std::hash<std::string_view> hash;
  std::size_t sum = std::hash<std::int64_t>()(key.program);
  for (const std::string_view part : {key.module, key.name, key.kernel, key.tensors})
    sum = sum * kGoldenRatio64 + hash(part);
  return sum;
}

template <class Make>
std::uint32_t XPlaneOperations::find_or_add_operation(const Key& key, Make make) {
  const auto [slot, is_new] = operation_numbers_.try_emplace(key, static_cast<std::uint32_t>(operations_.size()));
  if (is_new) operations_.push_back(make());
  return slot->second;
}

std::optional<std::uint32_t> XPlaneOperations::find_or_add_host_operation(const XEvent& event, bool is_input_pipeline) {
  if (const std::string_view op = event.find_text(XStatName::hlo_op); !op.empty()) {
    return find_or_add_instruction(
        {event.find_integer(XStatName::program_id).value_or(0), event.find_text(XStatName::hlo_module), op, {}, {}});
  }
  if (event.name.starts_with(kDataStagePrefix)) {
    const std::string_view stage = event.name.substr(event.name.rfind(':') + 1);
    if (is_waiting_stage(stage)) return std::nullopt;
    return find_or_add_operation({0, kInputPipelineKeyModule, stage, {}, {}},
                                 [&] { return make_input_pipeline_operation(stage); });
  }
  const std::size_t colon = event.name.rfind(':');
  const bool has_type = colon != std::string_view::npos && !event.display_name.empty() &&
                        event.name.substr(colon + 1) == event.display_name;
  // Node names contain no blank; "HLO Transforms:jit_step" is the compiler.
  const bool is_graph_node = has_type && event.name.find(' ') == std::string_view::npos &&
                             !event.name.starts_with(kStreamCallbackPrefix) && !is_function_type(event.display_name);
  if (!is_graph_node) return std::nullopt;
  if (is_input_pipeline)
    return find_or_add_operation({0, kInputPipelineKeyModule, event.display_name, {}, {}},
                                 [&] { return make_input_pipeline_operation(event.display_name); });
  return find_or_add_tensorflow_node(event.name.substr(0, colon), event.display_name,
                                     event.find_text(XStatName::shape));
}

std::optional<std::uint32_t> XPlaneOperations::find_or_add_kernel_operation(const XEvent& event) {
  if (const std::string_view op = event.find_text(XStatName::hlo_op); !op.empty()) {
    const bool is_command_buffer = op.starts_with(kCommandBufferPrefix);
    return find_or_add_instruction({event.find_integer(XStatName::program_id).value_or(0),
                                    event.find_text(XStatName::hlo_module),
                                    op,
                                    is_command_buffer ? event.name : std::string_view(),
                                    {}});
  }
  return parse_tensorflow_op(event.find_text(XStatName::tf_op), event.find_text(XStatName::shape));
}

// Parses the name and type of a node: "model/dense/MatMul:MatMul"; nullopt without both a name and a colon.
std::optional<std::uint32_t> XPlaneOperations::parse_tensorflow_op(std::string_view op_name_and_type,
                                                                   std::string_view tensors) {
  const std::size_t colon = op_name_and_type.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  return find_or_add_tensorflow_node(op_name_and_type.substr(0, colon), op_name_and_type.substr(colon + 1), tensors);
}

std::uint32_t XPlaneOperations::find_or_add_tensorflow_node(std::string_view name, std::string_view type,
                                                            std::string_view tensors) {
  return find_or_add_operation({0, kNodeKeyModule, name, type, tensors},
                               [&] { return make_node_operation(name, type, tensors); });
}

scopes::OpScope XPlaneOperations::scope_of_node(std::string_view node, std::string_view type) const {
  const std::string* const reader = find_value(graph_names_.variable_reader_by_update, node);
  if (reader == nullptr) return scopes::scope_of_tensorflow_op(node, type, graph_names_.scope_by_operation);
  scopes::OpScope scope = scopes::scope_of_tensorflow_op(*reader, type, graph_names_.scope_by_operation);
  scope.phase = kOptimizerPhase;
  return scope;
}

// The tensors of a node are those of the trace, else those of the program's graph.
XOperation XPlaneOperations::make_node_operation(std::string_view name, std::string_view type,
                                                 std::string_view tensors) const {
  // "tf_op" of a GPU event may also be a name of JAX, without a type.
  const bool is_jax_name = type.empty() && name.find('(') != std::string_view::npos;
  if (is_jax_name) return {std::string(name), scopes::scope_of_xla_op(name, scopes::is_gradient_op(name))};
  const std::string node = scopes::remove_call_name_parts(name);
  const auto fused_operation = find_value(graph_names_.fused_operations,
                                          type.find(kFusedTypePart) == std::string_view::npos ? std::string() : node);
  XOperation operation{std::string(name),
                       scope_of_node(fused_operation != nullptr ? fused_operation->first_operation : node, type)};
  std::string text = scopes::parse_tensorflow_tensors(tensors);
  if (text.empty() && fused_operation != nullptr) text = fused_operation->tensors;
  if (const auto graph_tensors = find_value(graph_names_.tensors_by_operation, node);
      text.empty() && graph_tensors != nullptr)
    text = *graph_tensors;
  operation.scope.tensors = scopes::append_tensors_to_node(node, text);
  return operation;
}

std::uint32_t XPlaneOperations::find_or_add_instruction(const Key& key) {
  return hlo_instruction_cache_.find_or_compute({{key.name, key.module, key.kernel}, key.program}, [&] {
    return find_or_add_operation(key, [&] { return make_instruction_operation(key); });
  });
}

// TensorFlow's names pass through XLA unchanged; JAX's names contain functions: jit(step).
XOperation XPlaneOperations::make_instruction_operation(const Key& key) {
  const HloProgram& program = find_hlo_program(key.program, key.module);
  const std::string name = key.kernel.empty() ? std::string(key.name) : instruction_name_of_kernel(key.kernel);
  const HloOrigin* const origin = program.find_instruction_origin(name);
  const std::string tensors = program.format_input_tensors(name);
  if (origin == nullptr) return {name, {{}, {}, name.substr(0, name.find('.')), tensors}};
  const bool is_jax_name = origin->op_name.find('(') != std::string_view::npos;
  if (is_jax_name) {
    XOperation operation{name, scopes::scope_of_xla_op(origin->op_name, program.computes_gradients())};
    operation.scope.tensors = tensors;
    return operation;
  }
  const std::string node = scopes::remove_call_name_parts(origin->op_name);
  XOperation operation{name, scope_of_node(node, origin->op_type)};
  operation.scope.tensors = scopes::append_tensors_to_node(node, tensors);
  return operation;
}

// Parses a program when one of its instructions is first seen. Some versions do not number programs.
const HloProgram& XPlaneOperations::find_hlo_program(std::int64_t number, std::string_view module) {
  const auto [slot, is_new] = programs_.try_emplace({module, number});
  if (!is_new) return slot->second;
  auto proto = hlo_protos_.find(fmt::format("{}({})", module, number));
  if (proto == hlo_protos_.end()) {
    proto = std::find_if(hlo_protos_.begin(), hlo_protos_.end(), [&](const auto& proto_entry) {
      return proto_entry.first == module ||
             (proto_entry.first.starts_with(module) && proto_entry.first.substr(module.size()).starts_with("("));
    });
  }
  if (proto != hlo_protos_.end()) slot->second = HloProgram::read(proto->second);
  return slot->second;
}

std::optional<XPlaneOperations::CudaGraphKey> XPlaneOperations::find_graph_of_kernel(const XEvent& event) {
  const std::string_view name = event.find_text(XStatName::hlo_op);
  if (!name.starts_with(kCommandBufferPrefix) || !event.has_stat(XStatName::graph_node_id)) return std::nullopt;
  return CudaGraphKey{event.find_integer(XStatName::program_id).value_or(0), event.find_text(XStatName::hlo_module),
                      name};
}

std::optional<std::vector<std::uint32_t>> XPlaneOperations::find_graph_operations(
    const CudaGraphKey& graph, std::span<const std::string_view> kernels) {
  const HloProgram& program = find_hlo_program(graph.program, graph.module);
  std::vector<std::size_t>& schedule_positions = schedule_positions_[{graph.module, graph.program}];
  schedule_positions.resize(program.schedules().size());
  // Small computations may match by chance, so the schedule with the most name matches is used.
  std::optional<KernelGraphMatch> best_match;
  std::size_t best_schedule_index = 0;
  for (std::size_t i = 0; i < schedule_positions.size(); ++i) {
    std::optional<KernelGraphMatch> match =
        match_graph_to_schedule(kernels, program.schedules()[i], schedule_positions[i]);
    if (!match || (best_match && best_match->name_match_count >= match->name_match_count)) continue;
    best_match = std::move(match);
    best_schedule_index = i;
  }
  if (!best_match) return std::nullopt;
  schedule_positions[best_schedule_index] = best_match->schedule_end_index;
  std::vector<std::uint32_t> operations;
  operations.reserve(kernels.size());
  for (const std::string_view name : best_match->instruction_by_kernel) {
    operations.push_back(find_or_add_instruction({graph.program, graph.module, name, {}, {}}));
  }
  return operations;
}

}  // namespace joulemap::ingest
