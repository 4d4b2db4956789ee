// SPDX-License-Identifier: Apache-2.0
//
// Reads lists of operations that the Python package traced from a PyTorch module (`joulemap.list_operations`, schema
// joulemap.operations/1): the forward pass, and for a training step also backward and optimizer. Pure.
#pragma once

#include <string_view>

#include "base/result.h"
#include "predict/graph/graph.h"

namespace joulemap::predict {

Result<Graph> read_torch_list(std::string_view json);

}  // namespace joulemap::predict
