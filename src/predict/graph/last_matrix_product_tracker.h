// SPDX-License-Identifier: Apache-2.0
//
// Infers the data flow between operations of a list, which stores no edges. The order of the list is sufficient for
// types and gradients. Pure.
#pragma once

#include "predict/graph/operation.h"

namespace joulemap::predict {

// Tracks the last matrix product of a forward pass. update() must be called in list order, one instance for each list.
class LastMatrixProductTracker {
 public:
  // Whether this dense product reads the same input as the last product, as those of query, key and value or of a gated
  // unit do. Both then have the same rows and input width, and this one does not read the last result: the widths
  // differ, or nothing was computed from it in between.
  bool has_input_of_last_product(const Operation& operation) const {
    const auto has_equal_parameter = [&](std::string_view name) {
      return last_product_.parameters.find(name) == operation.parameters.find(name);
    };
    if (operation.kind != Kind::dense || last_product_.kind != Kind::dense || last_product_.count != operation.count)
      return false;
    if (!has_equal_parameter("rows") || !has_equal_parameter("in")) return false;
    return has_only_layout_since_product_ ||
           last_product_.parameters.get("out", 1) != operation.parameters.get("in", 1);
  }

  void update(const Operation& operation) {
    if (operation.pass != Pass::forward) return;
    switch (operation.kind) {
      case Kind::dense:
      case Kind::bmm:
      case Kind::attention:
      case Kind::recurrent:
      case Kind::convolution:
        last_product_ = operation;
        has_only_layout_since_product_ = true;
        return;
      case Kind::view:
      case Kind::reshape:
      case Kind::cast:
        return;
      default:
        has_only_layout_since_product_ = false;
    }
  }

 private:
  Operation last_product_;
  bool has_only_layout_since_product_ = true;
};

}  // namespace joulemap::predict
