// SPDX-License-Identifier: Apache-2.0
//
// ScopePaths: resolves a scope of a recording to its mode, phase, module, operation and function, by the chain of its
// parents. A recording may use a scope before it defines it; a scope that is never defined has empty names. Pure.
//
// A module is named by its path within its model. If models of different classes contain the same path, the names of all
// their modules begin with the class: "Encoder.embedding", "Decoder.embedding". Models of one class ("Net", "Net#2")
// share their rows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/activity.h"

namespace joulemap::attribution {

// Phases of work that does not repeat from step to step.
inline constexpr std::string_view kSetupPhase = "setup";
inline constexpr std::string_view kCompilePhase = "compile";
inline constexpr std::string_view kCheckpointPhase = "checkpoint";  // prefix of its phases

// The code of a DataLoader and of its workers.
inline constexpr std::string_view kDataLoaderPhase = "dataloader";

inline constexpr std::string_view kProgramRowName = "program";  // row of GPU work launched in no scope
// Whether rows of this name mean something else than a module or region of the program.
bool is_reserved_row_name(std::string_view name);

struct ResolvedScope {
  std::string train_or_probe_mode;
  std::string phase;
  std::string module;  // the innermost one
  std::string op;
  std::string tensors;  // the node of a graph and shapes of its inputs (tensor_text.h); empty: unknown
  std::string function;
  std::vector<std::string> regions;  // outermost first

  // ["train", "backward", "layer4.0.conv2"]; if none of them is known, the program's own regions.
  std::vector<std::string> layer_path() const;
  std::vector<std::string> phase_path() const;
  // The regions; "region background" if the program has a region with a reserved name.
  std::vector<std::string> region_path() const;
  // "aten::conv2d [64,3,224,224] [64,3,7,7]"; the operation alone if its inputs are unknown.
  std::string op_with_tensors() const;
  bool is_probe() const { return train_or_probe_mode == kProbeModeScopeName; }
  // Names below a DataLoader are those of its workers and of their code.
  bool is_in_layer() const { return !module.empty() && phase != kDataLoaderPhase; }
  // Probing, setup, compilation, checkpoints: light mode does not extrapolate them.
  bool is_one_time() const;
};

class ScopePaths {
 public:
  void add(const Scope& scope) {
    scopes_.insert_or_assign(scope.id, scope);
    ambiguous_models_.reset();
  }
  // Call after all scopes were added: the result is cached, and the reference stays valid.
  const ResolvedScope& resolved_scope(std::uint32_t scope);
  // Number of operations, and of those whose inputs are unknown.
  struct OperationCounts {
    std::size_t operation_count = 0;
    std::size_t tensorless_operation_count = 0;
  };
  OperationCounts count_operations() const;
  // As ResolvedScope::is_one_time(), but uses the scopes added so far and caches nothing.
  bool is_one_time(std::uint32_t scope) const;
  // Classes of models that share names of modules with models of other classes.
  const std::set<std::string, std::less<>>& find_ambiguous_models();
  // Classes that are ambiguous in another process: names must not differ between processes.
  void add_ambiguous_models(const std::set<std::string, std::less<>>& models);
  bool contains(std::uint32_t scope) const { return scope == 0 || scopes_.contains(scope); }

 private:
  std::string model_class(std::uint32_t scope) const;

  std::unordered_map<std::uint32_t, Scope> scopes_;
  std::optional<std::set<std::string, std::less<>>> ambiguous_models_;
  std::unordered_map<std::uint32_t, ResolvedScope> resolved_scopes_;
};

}  // namespace joulemap::attribution
