// SPDX-License-Identifier: Apache-2.0
//
// ModulePaths: finds the layer that a module call belongs to. A PyTorch trace only contains "nn.Module: Conv2d_3",
// the fourth Conv2d that was called; ModuleNames gives its path. Without ModuleNames, a layer is named by the classes
// and numbers around it: "Sequential_0.Block_1.Conv2d_3". A model itself has the name of its class, as in a live
// capture. A module that only wraps a model (DistributedDataParallel) is not a layer. Single-threaded; borrows its
// arguments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ingest/scope_assignment/trace_names.h"
#include "scopes/module_names.h"
#include "scopes/scope_interner.h"

namespace joulemap::ingest {

class ModulePaths {
 public:
  // A layer; 0 means outside of every layer.
  using LayerId = std::uint32_t;

  ModulePaths(const scopes::ModuleNames& names, const TraceNames& texts, ScopeInterner& scope_interner)
      : names_(names), texts_(texts), scope_interner_(scope_interner) {}

  // Returns the layer of a call of the module `name` inside `parent`.
  LayerId find_layer(LayerId parent, std::uint32_t name);
  // Whether the class in the name is a loss, or a wrapper of a model.
  bool is_loss_module(std::uint32_t name);
  bool is_wrapper_module(std::uint32_t name);

  // Returns the scope of a layer inside the scope `phase`; `phase` itself outside of every layer.
  std::uint32_t find_or_add_scope(LayerId node, std::uint32_t phase);
  bool has_module_names() const { return !names_.empty(); }
  std::uint64_t pathless_call_count() const { return pathless_call_count_; }
  // Number of calls nested too deeply, which are counted with the enclosing module.
  std::uint64_t too_deep_call_count() const { return too_deep_call_count_; }

 private:
  struct Layer {
    LayerId parent = 0;
    std::uint32_t depth = 0;
    std::uint32_t path_text = 0;
    std::string path;
    bool is_root = false;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> scope_by_phase;  // pairs of phase and scope
  };
  struct ModuleCallName {
    std::string_view class_name;
    std::uint64_t number = 0;
    bool is_numbered = false;
    bool is_loss_module = false;
    bool is_wrapper_module = false;
    LayerId layer = 0;  // of a numbered name, once seen: the number identifies one module, wherever it is called
  };
  ModuleCallName& find_or_parse_call_name(std::uint32_t name);
  ModuleCallName parse_call_name(std::uint32_t name) const;
  std::string make_layer_path(const Layer& parent, bool is_root, std::uint32_t name);

  const scopes::ModuleNames& names_;
  const TraceNames& texts_;
  ScopeInterner& scope_interner_;
  std::vector<Layer> layers_{1};
  std::unordered_map<std::uint64_t, LayerId>
      unnumbered_layers_;                         // layers of names without a number, by parent and name
  std::vector<ModuleCallName> call_names_;        // parsed names of modules seen so far
  std::vector<std::uint32_t> call_name_indices_;  // by name: index in call_names_ + 1
  std::uint64_t pathless_call_count_ = 0;
  std::uint64_t too_deep_call_count_ = 0;
};

}  // namespace joulemap::ingest
