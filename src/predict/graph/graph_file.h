// SPDX-License-Identifier: Apache-2.0
//
// A network from whatever file it came in: ONNX, Keras's JSON, or a list of operations that the Python package traced. What
// it is, its content tells, never its name. Pure.
#pragma once

#include <string_view>

#include "base/result.h"
#include "predict/graph/graph.h"

namespace joulemap::predict {

// A traced list has its sizes and types already: options that ask for others are wrong usage. Of a file that is none of
// the three the Error says what it seems to be and how to get one that can be read.
Result<Graph> read_graph(std::string_view bytes, const GraphOptions& options);

}  // namespace joulemap::predict
