// SPDX-License-Identifier: Apache-2.0
//
// Nodes of a function whose attributes are those of its caller: which they are, and what they look like in a call.
#pragma once

#include "predict/graph/onnx/onnx_model.h"

namespace joulemap::predict::onnx {

bool refers_to_caller(const Node& node);
// A copy with the caller's attributes, or with the function's defaults, in place of references.
Node with_attributes_of(const Node& caller, const Function& function, const Node& node);

}  // namespace joulemap::predict::onnx
