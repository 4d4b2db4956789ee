// SPDX-License-Identifier: Apache-2.0
//
// Resolves attributes of a function's nodes that refer to attributes of the function's caller.
#pragma once

#include "predict/graph/onnx/onnx_model.h"

namespace joulemap::predict::onnx {

bool refers_to_caller_attribute(const Node& node);
// Returns a copy of `node` in which attributes of the caller, or else the function's defaults, replace the references.
Node copy_caller_attributes(const Node& caller, const Function& function, const Node& node);

}  // namespace joulemap::predict::onnx
