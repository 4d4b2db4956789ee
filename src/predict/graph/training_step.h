// SPDX-License-Identifier: Apache-2.0
//
// Expands the forward operations of a graph to a training step, and fuses operations as torch.compile does. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "predict/graph/graph.h"
#include "predict/graph/operation.h"

namespace joulemap::predict {

// Returns the forward operations with batch statistics, a loss over the last result, the backward operations in reverse
// order with their layers' names, and the optimizer step. A graph that already contains backward operations (a traced
// list) stays unchanged. `optimizer`: sgd momentum adam adamw rmsprop; the caller validates it.
//
// Operations whose backward pass runs the same kernel (copies, casts, products with a scalar) have the pass `forward`
// there. The sum of the gradients of a tensor that is read twice is an add. Dropout that an exporter removed is not
// restored.
std::vector<Operation> make_training_step(const Graph& graph, std::string_view optimizer);

// Fuses neighbouring element-wise operations into one that reads and writes once, as torch.compile does, and removes
// views. Accepts a forward pass or a training step; compiled.cc lists the rules.
std::vector<Operation> to_compiled_operations(std::vector<Operation> operations);

}  // namespace joulemap::predict
