// SPDX-License-Identifier: Apache-2.0
//
// Reads ONNX files (opset 13 and newer) as operations for predictions. Needs shapes only: weights may be missing.
// Stages: onnx_model.h parses the file, input_sizes.h sets the input sizes, walk.h propagates sizes through the nodes,
// fusions.h fuses steps into kernels, to_operations.h translates them.
#pragma once

#include <string_view>

#include "base/result.h"
#include "predict/graph/graph.h"

namespace joulemap::predict {

// `bytes` is the whole file. Pure; the result does not refer to `bytes`.
Result<Graph> read_onnx(std::string_view bytes, const GraphOptions& options);

}  // namespace joulemap::predict
