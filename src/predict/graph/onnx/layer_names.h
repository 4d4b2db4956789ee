// SPDX-License-Identifier: Apache-2.0
//
// Module path of a node: "layer1.0.conv1" for PyTorch's node "/layer1/layer1.0/conv1/Conv", or from the scopes that its
// newer exporter writes. Pure.
#pragma once

#include <string>

#include "predict/graph/onnx/onnx_model.h"

namespace joulemap::predict::onnx {

// The node's name if it contains no path; the name of its output if it has no name; else its type.
std::string module_path_of(const Node& node);

}  // namespace joulemap::predict::onnx
