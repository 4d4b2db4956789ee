// SPDX-License-Identifier: Apache-2.0
//
// Where a node belongs, as the modules of the network are called: "layer1.0.conv1" of PyTorch's node
// "/layer1/layer1.0/conv1/Conv", or of the scopes that its newer exporter writes. Pure text.
#pragma once

#include <string>

#include "predict/graph/onnx/onnx_model.h"

namespace joulemap::predict::onnx {

// The node's name where there is no path in it, and the name of its output where it has none.
std::string layer_of(const Node& node);

}  // namespace joulemap::predict::onnx
