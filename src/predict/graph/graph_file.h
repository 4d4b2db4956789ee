// SPDX-License-Identifier: Apache-2.0
//
// Reads a network from any supported file: ONNX, Keras JSON, or a list of operations that the Python package traced.
// The content identifies the format, never the file name. Pure.
#pragma once

#include <string_view>

#include "base/result.h"
#include "predict/graph/graph.h"

namespace joulemap::predict {

// A traced list has fixed sizes: a batch or inputs in the options are a usage error. If the file is unreadable, the
// Error names the likely format and how to get a readable file.
Result<Graph> read_graph(std::string_view bytes, const GraphOptions& options);

}  // namespace joulemap::predict
