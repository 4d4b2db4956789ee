// SPDX-License-Identifier: Apache-2.0
//
// From the forward operations of a graph to all of a training step, and from a list of operations to what a compiler
// makes of it. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "predict/graph/graph.h"
#include "predict/graph/operation.h"

namespace joulemap::predict {

// The forward operations with the statistics of the batch, the loss over the last result, the backward operations from
// the last to the first, each with its layer's name, and the optimizer's step. A graph that holds backward operations
// already (torch lists) is left as it is. `optimizer`: sgd momentum adam adamw rmsprop, which the caller has checked.
//
// What runs backward as it runs forward (copies, casts, products with a number) stands in the list with the pass
// `forward`; the sum of the gradients of a tensor that is read twice is an add. Dropout that a graph has lost stays lost.
std::vector<Operation> training_step(const Graph& graph, std::string_view optimizer);

// Neighbours that work element by element become one operation that reads and writes once; views vanish. The list may be
// a forward pass or a training step; the rules stand in compiled.cc.
std::vector<Operation> compiled(std::vector<Operation> operations);

}  // namespace joulemap::predict
