// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/scope_paths.h"

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_set>

#include "model/background_row.h"
#include "scopes/tensor_text.h"

namespace joulemap::attribution {
namespace {

// Limit of the chain of parents, which may be a cycle in a damaged file. No program nests deeper.
constexpr int kMaxScopeDepth = 1000;

void append_if_not_empty(std::vector<std::string>& path, const std::string& name) {
  if (!name.empty()) path.push_back(name);
}

bool is_one_time_phase(std::string_view phase) {
  return phase == kSetupPhase || phase == kCompilePhase || phase.starts_with(kCheckpointPhase);
}

// The innermost name wins: callers walk the chain from the inside out.
void set_if_empty(std::string& stored_name, const std::string& name) {
  if (stored_name.empty()) stored_name = name;
}

// Whether a module is the model itself, or its name already begins with that of the model: in imported traces a module
// that is called directly has its full path, and some have no model at all.
bool names_model(std::string_view module, std::string_view model) {
  return module.starts_with(model) &&
         (module.size() == model.size() || module[model.size()] == '.' || module[model.size()] == '#');
}

}  // namespace

bool is_reserved_row_name(std::string_view name) {
  return name == kProbeModeScopeName || name == kBackgroundRowName || name == kProgramRowName;
}

std::vector<std::string> ResolvedScope::phase_path() const {
  std::vector<std::string> path;
  append_if_not_empty(path, train_or_probe_mode);
  append_if_not_empty(path, phase);
  return path.empty() ? region_path() : path;
}

std::vector<std::string> ResolvedScope::region_path() const {
  std::vector<std::string> path = regions;
  if (!path.empty() && is_reserved_row_name(path.front())) path.front() = "region " + path.front();
  return path;
}

std::vector<std::string> ResolvedScope::layer_path() const {
  std::vector<std::string> path = phase_path();
  append_if_not_empty(path, module);
  return path;
}

std::string ResolvedScope::op_with_tensors() const { return op.empty() || tensors.empty() ? op : op + " " + tensors; }

bool ResolvedScope::is_one_time() const { return is_probe() || is_one_time_phase(phase); }

bool ScopePaths::is_one_time(std::uint32_t scope) const {
  for (int depth = 0; scope != 0 && depth < kMaxScopeDepth; ++depth) {
    const auto scope_entry = scopes_.find(scope);
    if (scope_entry == scopes_.end()) return false;
    if (scope_entry->second.kind == ScopeKind::phase && is_one_time_phase(scope_entry->second.name)) return true;
    if (scope_entry->second.kind == ScopeKind::mode) return scope_entry->second.name == kProbeModeScopeName;
    scope = scope_entry->second.parent;
  }
  return false;
}

const ResolvedScope& ScopePaths::resolved_scope(std::uint32_t scope) {
  const auto [slot, is_new] = resolved_scopes_.try_emplace(scope);
  if (!is_new) return slot->second;
  ResolvedScope& resolved_scope = slot->second;
  const std::uint32_t innermost_scope = scope;
  for (int depth = 0; scope != 0 && depth < kMaxScopeDepth; ++depth) {
    const auto scope_entry = scopes_.find(scope);
    if (scope_entry == scopes_.end()) break;
    const auto& [id, parent, kind, name] = scope_entry->second;
    if (kind == ScopeKind::mode) set_if_empty(resolved_scope.train_or_probe_mode, name);
    if (kind == ScopeKind::phase) set_if_empty(resolved_scope.phase, name);
    if (kind == ScopeKind::module) set_if_empty(resolved_scope.module, name);
    if (kind == ScopeKind::op) set_if_empty(resolved_scope.op, name);
    if (kind == ScopeKind::tensors && resolved_scope.op.empty()) set_if_empty(resolved_scope.tensors, name);
    if (kind == ScopeKind::function) set_if_empty(resolved_scope.function, name);
    if (kind == ScopeKind::region) resolved_scope.regions.push_back(name);
    scope = parent;
  }
  std::reverse(resolved_scope.regions.begin(), resolved_scope.regions.end());
  if (!resolved_scope.module.empty() && !find_ambiguous_models().empty()) {
    const std::string model = model_class(innermost_scope);
    if (find_ambiguous_models().contains(model) && !names_model(resolved_scope.module, model))
      resolved_scope.module = model + "." + resolved_scope.module;
  }
  return resolved_scope;
}

// The class of the outermost module around a scope; empty without modules.
std::string ScopePaths::model_class(std::uint32_t scope) const {
  std::string_view outermost_module;
  for (int depth = 0; scope != 0 && depth < kMaxScopeDepth; ++depth) {
    const auto scope_entry = scopes_.find(scope);
    if (scope_entry == scopes_.end()) break;
    if (scope_entry->second.kind == ScopeKind::module) outermost_module = scope_entry->second.name;
    scope = scope_entry->second.parent;
  }
  return std::string(outermost_module.substr(0, outermost_module.find('#')));
}

const std::set<std::string, std::less<>>& ScopePaths::find_ambiguous_models() {
  if (ambiguous_models_) return *ambiguous_models_;
  ambiguous_models_.emplace();
  std::unordered_map<std::string_view, std::string> model_by_module;
  for (const auto& [id, scope] : scopes_) {
    if (scope.kind != ScopeKind::module) continue;
    const std::string model = model_class(id);
    if (names_model(scope.name, model)) continue;
    const auto [module_model, is_new] = model_by_module.try_emplace(scope.name, model);
    if (!is_new && module_model->second != model) ambiguous_models_->insert({model, module_model->second});
  }
  return *ambiguous_models_;
}

void ScopePaths::add_ambiguous_models(const std::set<std::string, std::less<>>& models) {
  find_ambiguous_models();
  ambiguous_models_->insert(models.begin(), models.end());
}

ScopePaths::OperationCounts ScopePaths::count_operations() const {
  OperationCounts counts;
  std::unordered_set<std::uint32_t> operations_with_tensors;
  for (const auto& [id, scope] : scopes_) {
    if (scope.kind == ScopeKind::op) ++counts.operation_count;
    if (scope.kind != ScopeKind::tensors || !scopes::has_tensor_text(scope.name)) continue;
    const auto parent = scopes_.find(scope.parent);
    if (parent != scopes_.end() && parent->second.kind == ScopeKind::op) operations_with_tensors.insert(scope.parent);
  }
  counts.tensorless_operation_count = counts.operation_count - operations_with_tensors.size();
  return counts;
}

}  // namespace joulemap::attribution
