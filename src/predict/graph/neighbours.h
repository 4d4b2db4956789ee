// SPDX-License-Identifier: Apache-2.0
//
// What a list of operations tells of how its members hang together: it has no edges, but its order says enough for types
// and gradients. Pure.
#pragma once

#include "predict/graph/operation.h"

namespace joulemap::predict {

// Remembers the last product of a forward pass; asked in the order of the list, for one list.
class LastProduct {
 public:
  // Whether this one reads the input of the last one again, as the products of query, key and value do, or the two of a
  // gated unit: as many rows of the same width, and the last one's result is not what it reads, because it is of another
  // width or because nothing was computed from it.
  bool has_same_input(const Operation& operation) const {
    const auto equal = [&](std::string_view name) {
      return last_.parameters.find(name) == operation.parameters.find(name);
    };
    if (operation.kind != Kind::dense || last_.kind != Kind::dense || last_.count != operation.count) return false;
    if (!equal("rows") || !equal("in")) return false;
    return only_moved_ || last_.parameters.get("out", 1) != operation.parameters.get("in", 1);
  }

  void pass(const Operation& operation) {
    if (operation.pass != Pass::forward) return;
    switch (operation.kind) {
      case Kind::dense:
      case Kind::bmm:
      case Kind::attention:
      case Kind::recurrent:
      case Kind::convolution:
        last_ = operation;
        only_moved_ = true;
        return;
      case Kind::view:
      case Kind::reshape:
      case Kind::cast:
        return;
      default:
        only_moved_ = false;
    }
  }

 private:
  Operation last_;
  bool only_moved_ = true;
};

}  // namespace joulemap::predict
