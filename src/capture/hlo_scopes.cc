// SPDX-License-Identifier: Apache-2.0
#include "capture/hlo_scopes.h"

#include <utility>

#include "scopes/op_names.h"

namespace joulemap::capture {
namespace {

std::string_view find_hlo_field_value(std::string_view fields, std::string_view name) {
  while (!fields.empty()) {
    const std::size_t comma = fields.find(',');
    const std::string_view field = fields.substr(0, comma);
    if (field.starts_with(name) && field.substr(name.size()).starts_with('=')) return field.substr(name.size() + 1);
    fields = comma == std::string_view::npos ? std::string_view() : fields.substr(comma + 1);
  }
  return {};
}

}  // namespace

std::optional<HloRange> parse_hlo_range(std::string_view text) {
  const std::size_t begin = text.find('#');
  if (begin == std::string_view::npos) return std::nullopt;
  const std::size_t end = text.find('#', begin + 1);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view fields = text.substr(begin + 1, end - begin - 1);
  const HloRange range{.module = find_hlo_field_value(fields, "hlo_module"),
                       .instruction = find_hlo_field_value(fields, "hlo_op")};
  if (range.module.empty() && range.instruction.empty()) return std::nullopt;
  return range;
}

bool is_xla_compiler_range(std::string_view text) {
  return text.starts_with("Xla") && text.find(":#") != std::string_view::npos && !parse_hlo_range(text);
}

bool HloScopes::is_autotuning(std::string_view module) {
  const std::lock_guard lock(lock_);
  return are_all_programs_registered_ && !module.empty() && !programs_by_module_.contains(module);
}

void HloScopes::register_op(std::string_view module, std::string_view instruction, std::string_view op_name) {
  const std::lock_guard lock(lock_);
  are_all_programs_registered_ |= module.empty();
  if (module.empty()) return;
  if (instruction_count_ >= kMaxInstructions) return;
  Program& program = programs_by_module_.try_emplace(std::string(module)).first->second;
  instruction_count_ +=
      program.op_names_by_instruction.insert_or_assign(std::string(instruction), std::string(op_name)).second ? 1 : 0;
  // Cached scopes become invalid: the program may have been recompiled under the same name. Gradient operations show
  // that the program trains, which changes the scopes of all its operations.
  const bool was_training = std::exchange(program.is_training, program.is_training || scopes::is_gradient_op(op_name));
  if (was_training != program.is_training) program.scopes_by_instruction.clear();
  program.scopes_by_instruction.erase(std::string(instruction));
}

std::optional<std::uint32_t> HloScopes::find_scope(std::string_view module, std::string_view instruction,
                                                   ScopeTable& scopes) {
  const std::lock_guard lock(lock_);
  const auto program = programs_by_module_.find(module);
  if (program == programs_by_module_.end()) return std::nullopt;
  auto& [op_names, resolved_scopes, is_training] = program->second;
  if (const auto resolved_scope = resolved_scopes.find(instruction); resolved_scope != resolved_scopes.end())
    return resolved_scope->second;
  const auto op_name = op_names.find(instruction);
  if (op_name == op_names.end()) return std::nullopt;
  const scopes::OpScope origin = scopes::scope_of_xla_op(op_name->second, is_training);
  std::uint32_t scope = scopes.find_or_add_child(0, ScopeKind::mode, is_training ? "train" : "inference");
  if (!origin.phase.empty()) scope = scopes.find_or_add_child(scope, ScopeKind::phase, origin.phase);
  if (!origin.module.empty()) scope = scopes.find_or_add_child(scope, ScopeKind::module, origin.module);
  if (!origin.op.empty()) scope = scopes.find_or_add_child(scope, ScopeKind::op, origin.op);
  resolved_scopes.emplace(instruction, scope);
  return scope;
}

}  // namespace joulemap::capture
