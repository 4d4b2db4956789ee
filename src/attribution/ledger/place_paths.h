// SPDX-License-Identifier: Apache-2.0
//
// PlacePaths: what a place of a recording means: which mode, phase, module, operation, function it stands for, from the
// chain of its parents. Places may be told after they are used; one that never is has an empty meaning. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/activity.h"

namespace joulemap::attribution {

struct PlaceMeaning {
  std::string mode;
  std::string phase;
  std::string module;  // the innermost
  std::string op;
  std::string tensors;  // of the operation; empty: not known
  std::string function;
  std::vector<std::string> regions;  // outermost first

  // ["train", "backward", "layer4.0.conv2"]; where none of them is known, the program's own regions.
  std::vector<std::string> layer_path() const;
  std::vector<std::string> phase_path() const;
  // "aten::conv2d [64,3,224,224] [64,3,7,7]"; the operation alone where its inputs are not known.
  std::string op_with_tensors() const;
  bool probes() const { return mode == kProbeMode; }
};

class PlacePaths {
 public:
  void add(const Place& place) { places_.insert_or_assign(place.id, place); }
  // By reference: until the next add.
  const PlaceMeaning& meaning(std::uint32_t place);
  // Operations, and of those the ones whose inputs are not known.
  struct Operations {
    std::size_t all = 0;
    std::size_t without_tensors = 0;
  };
  Operations operations() const;
  // As far as places were told by now.
  bool probes(std::uint32_t place) const;
  bool knows(std::uint32_t place) const { return place == 0 || places_.contains(place); }

 private:
  std::unordered_map<std::uint32_t, Place> places_;
  std::unordered_map<std::uint32_t, PlaceMeaning> meanings_;
};

}  // namespace joulemap::attribution
