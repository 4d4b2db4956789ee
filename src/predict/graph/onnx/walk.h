// SPDX-License-Identifier: Apache-2.0
//
// From a model and the sizes of its inputs to a program: one walk over the nodes in their order, which infers sizes,
// inlines functions, takes branches whose condition is known and goes once through loops whose number of turns is
// known. Sizes beyond belief and functions that call themselves are an Error; a node that is not understood is a step
// with a failure.
#pragma once

#include "base/result.h"
#include "predict/graph/onnx/input_sizes.h"
#include "predict/graph/onnx/onnx_model.h"
#include "predict/graph/onnx/program.h"

namespace joulemap::predict::onnx {

// `before` is the program of the same model with the batch of the file, or null (AtFileBatch in shapes.h).
Result<Program> walk(const Model& model, const InputSizes& inputs, const std::vector<Sizes>& sizes,
                     const Program* before);

}  // namespace joulemap::predict::onnx
