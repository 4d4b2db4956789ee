// SPDX-License-Identifier: Apache-2.0
//
// ModulePaths: which layer a call of a module is of. A PyTorch trace only says "nn.Module: Conv2d_3", the fourth Conv2d that
// was called; ModuleNames tells its path. Without, a layer is called by the classes and numbers around it:
// "Sequential_0.Block_1.Conv2d_3". A model itself has the name of its class, as in a live capture; what only wraps a model
// (DistributedDataParallel) is no layer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ingest/placing/place_tree.h"
#include "ingest/placing/trace_names.h"
#include "scopes/module_names.h"

namespace joulemap::ingest {

class ModulePaths {
 public:
  // A layer; 0 is outside of every layer.
  using Node = std::uint32_t;

  ModulePaths(const ModuleNames& names, const TraceNames& texts, PlaceTree& tree)
      : names_(names), texts_(texts), tree_(tree) {}

  // The layer that a call of the module of that name within `parent` is of.
  Node within(Node parent, std::uint32_t name);
  // Whether the name is that of a loss, or of what wraps a model: by its class.
  bool is_loss(std::uint32_t name);
  bool is_wrapper(std::uint32_t name);

  // The place of a layer in a phase.
  std::uint32_t place(Node node, std::uint32_t phase);
  bool knows_paths() const { return !names_.empty(); }
  std::uint64_t calls_without_path() const { return without_path_; }
  // Calls within so many modules that they are counted with those around them.
  std::uint64_t calls_too_deep() const { return too_deep_; }

 private:
  struct Layer {
    Node parent = 0;
    std::uint32_t depth = 0;
    std::uint32_t text = 0;
    std::string path;
    bool is_root = false;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> places;  // by phase
  };
  struct Kind {
    std::string_view class_name;
    std::uint64_t number = 0;
    bool is_numbered = false;
    bool is_loss = false;
    bool is_wrapper = false;
    Node node = 0;  // of a numbered one that was met: it is one module's, wherever it is called from
  };
  Kind& kind_of(std::uint32_t name);
  Kind read_kind(std::uint32_t name) const;
  std::string path_of(const Layer& parent, bool is_root, std::uint32_t name);

  const ModuleNames& names_;
  const TraceNames& texts_;
  PlaceTree& tree_;
  std::vector<Layer> layers_{1};
  std::unordered_map<std::uint64_t, Node> known_;  // of names that are no module's own: by parent and name
  std::vector<Kind> kinds_;                        // of names that were met
  std::vector<std::uint32_t> kind_numbers_;        // by name: where in kinds_, + 1
  std::uint64_t without_path_ = 0;
  std::uint64_t too_deep_ = 0;
};

}  // namespace joulemap::ingest
