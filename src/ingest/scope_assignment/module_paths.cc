// SPDX-License-Identifier: Apache-2.0
#include "ingest/scope_assignment/module_paths.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace joulemap::ingest {
namespace {

constexpr std::string_view kModulePrefix = "nn.Module: ";
// Classes of modules that wrap a model. The same list as in python/joulemap/_torch_wrappers.py.
constexpr std::array<std::string_view, 5> kWrapperModuleClasses = {
    "DistributedDataParallel", "DataParallel", "OptimizedModule", "FullyShardedDataParallel", "CheckpointWrapper"};

// Limits the recursion of find_or_add_scope() and the length of paths. Deeper calls count with the enclosing module.
constexpr std::uint32_t kMaxModuleDepth = 256;

}  // namespace

ModulePaths::ModuleCallName& ModulePaths::find_or_parse_call_name(std::uint32_t name) {
  if (name >= call_name_indices_.size())
    call_name_indices_.resize(std::max<std::size_t>(name + std::size_t{1}, texts_.size()));
  std::uint32_t& number = call_name_indices_[name];
  if (number == 0) {
    call_names_.push_back(parse_call_name(name));
    number = static_cast<std::uint32_t>(call_names_.size());
  }
  return call_names_[number - 1];
}

ModulePaths::ModuleCallName ModulePaths::parse_call_name(std::uint32_t name) const {
  ModuleCallName kind;
  std::string_view text = texts_.text(name);
  if (text.starts_with(kModulePrefix)) text.remove_prefix(kModulePrefix.size());
  kind.class_name = text;
  const std::size_t underscore = text.rfind('_');
  if (underscore != std::string_view::npos && underscore > 0) {
    const std::string_view digits = text.substr(underscore + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), kind.number);
    kind.is_numbered = error == std::errc() && end == digits.data() + digits.size() && !digits.empty();
    if (kind.is_numbered) kind.class_name = text.substr(0, underscore);
  }
  kind.is_loss_module = kind.class_name.ends_with("Loss");
  kind.is_wrapper_module = std::find(kWrapperModuleClasses.begin(), kWrapperModuleClasses.end(), kind.class_name) !=
                           kWrapperModuleClasses.end();
  return kind;
}

bool ModulePaths::is_loss_module(std::uint32_t name) { return find_or_parse_call_name(name).is_loss_module; }

bool ModulePaths::is_wrapper_module(std::uint32_t name) { return find_or_parse_call_name(name).is_wrapper_module; }

std::string ModulePaths::make_layer_path(const Layer& parent, bool is_root, std::uint32_t name) {
  const ModuleCallName& kind = find_or_parse_call_name(name);
  const auto module_names = names_.find(kind.class_name);
  if (kind.is_numbered && module_names != names_.end() && kind.number < module_names->second.size()) {
    return module_names->second[kind.number];
  }
  if (is_root) {
    std::string path(kind.class_name);
    if (kind.number > 0) path += "#" + std::to_string(kind.number + 1);
    return path;
  }
  if (has_module_names()) ++pathless_call_count_;
  std::string_view text = texts_.text(name);
  if (text.starts_with(kModulePrefix)) text.remove_prefix(kModulePrefix.size());
  return parent.is_root ? std::string(text) : parent.path + "." + std::string(text);
}

ModulePaths::LayerId ModulePaths::find_layer(LayerId parent, std::uint32_t name) {
  ModuleCallName& kind = find_or_parse_call_name(name);
  LayerId& layer_id = kind.is_numbered ? kind.layer : unnumbered_layers_[std::uint64_t{parent} << 32 | name];
  if (layer_id != 0) return layer_id;
  if (layers_[parent].depth >= kMaxModuleDepth) {
    ++too_deep_call_count_;
    return parent;
  }
  const bool is_root = parent == 0;
  Layer layer;
  layer.parent = parent;
  layer.depth = layers_[parent].depth + 1;
  layer.is_root = is_root;
  layer.path = make_layer_path(layers_[parent], is_root, name);
  layer.path_text = scope_interner_.intern_text(layer.path);
  layers_.push_back(std::move(layer));
  return layer_id = static_cast<LayerId>(layers_.size() - 1);
}

std::uint32_t ModulePaths::find_or_add_scope(LayerId node, std::uint32_t phase) {
  if (node == 0) return phase;
  for (const auto& [known_phase, scope] : layers_[node].scope_by_phase) {
    if (known_phase == phase) return scope;
  }
  const std::uint32_t module_scope = scope_interner_.find_or_add_child_scope(
      find_or_add_scope(layers_[node].parent, phase), ScopeKind::module, layers_[node].path_text);
  layers_[node].scope_by_phase.emplace_back(phase, module_scope);
  return module_scope;
}

}  // namespace joulemap::ingest
