// SPDX-License-Identifier: Apache-2.0
//
// ModuleScopes: the tree of module names of a program, and the scope of each module in every pass: a layer has one
// scope in the forward pass and another in the backward pass. Node 0 is outside of all modules; its scopes are the
// phases themselves. Requires the GIL; never destroyed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "joulemap/capture.h"

namespace joulemap::python {

enum class ModelMode : std::uint8_t { unknown, train, inference };

enum class Pass : std::uint8_t {
  forward,    // with gradients
  loss,       // forward with gradients, of a loss module
  recompute,  // forward within a backward pass: activation checkpointing
  inference,  // forward without gradients
  inference_loss,
  backward,
};
inline constexpr std::size_t kPassCount = 6;

// The scope of a phase, such as "optimizer" within "train"; at the root when the mode is unknown.
jmc_scope phase_scope(ModelMode mode, const char* phase);

class ModuleScopes {
 public:
  // The node of a module within its parent; `name` is its full dotted path. Equal arguments give the same node.
  std::uint32_t find_or_add_module_node(std::uint32_t parent, std::string_view name);
  bool has_node(std::uint32_t node) const { return node < nodes_.size(); }

  jmc_scope scope(std::uint32_t node, Pass pass) {
    const jmc_scope known = nodes_[node].scopes[static_cast<std::size_t>(pass)];
    return known != 0 ? known : make_scope(node, pass);
  }

  // Forgets the cached scope ids. Called in the child of a fork and for another recording, where ids start again.
  void forget_scopes();

 private:
  struct Node {
    std::uint32_t parent = 0;
    std::string name;
    std::array<jmc_scope, kPassCount> scopes{};
  };

  jmc_scope make_scope(std::uint32_t node, Pass pass);

  std::vector<Node> nodes_{1};
  std::unordered_map<std::string, std::uint32_t> nodes_by_key_;
};

}  // namespace joulemap::python
