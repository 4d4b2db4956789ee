// SPDX-License-Identifier: Apache-2.0
//
// ONNX files (opset 13 and newer) to the operations that predictions are made of. Only shapes are needed: weights may be
// missing. How it goes: onnx_model.h reads the file, input_sizes.h says what goes in, walk.h follows the sizes through
// the nodes, fusions.h joins what is one kernel, to_operations.h gives everything its name.
#pragma once

#include <string_view>

#include "base/result.h"
#include "predict/graph/graph.h"

namespace joulemap::predict {

// `bytes` is the whole file. Pure; nothing of the result points into it.
Result<Graph> read_onnx(std::string_view bytes, const GraphOptions& options);

}  // namespace joulemap::predict
