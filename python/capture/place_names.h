// SPDX-License-Identifier: Apache-2.0
//
// PlaceNames: what the modules of a program are called, as a tree, and the place of each in every pass: the same layer is
// one place in the forward pass, another in the backward pass. Node 0 is outside of every module: its places are the phases
// themselves. Under Python's GIL; never destroyed.
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

enum class Mode : std::uint8_t { unknown, train, inference };

enum class Pass : std::uint8_t {
  forward,    // with gradients
  loss,       // the same of a loss module
  recompute,  // within a backward pass: activation checkpointing
  inference,  // forward without gradients
  inference_loss,
  backward,
};
inline constexpr std::size_t kPasses = 6;

// The place of a phase: "optimizer" within "train", say. Of an unknown mode: within nothing.
jmc_place phase_place(Mode mode, const char* phase);

class PlaceNames {
 public:
  // The module of that name within another; the name is its whole dotted path. The same for the same two.
  std::uint32_t child(std::uint32_t parent, std::string_view name);
  bool has(std::uint32_t node) const { return node < nodes_.size(); }

  jmc_place place(std::uint32_t node, Pass pass) {
    const jmc_place known = nodes_[node].places[static_cast<std::size_t>(pass)];
    return known != 0 ? known : make_place(node, pass);
  }

  // In the child of a fork, where places count anew.
  void forget_places();

 private:
  struct Node {
    std::uint32_t parent = 0;
    std::string name;
    std::array<jmc_place, kPasses> places{};
  };

  jmc_place make_place(std::uint32_t node, Pass pass);

  std::vector<Node> nodes_{1};
  std::unordered_map<std::string, std::uint32_t> ids_;
};

}  // namespace joulemap::python
