// SPDX-License-Identifier: Apache-2.0
//
// Builds a Program from a model and its input sizes in one pass over the nodes. It infers sizes, inlines functions,
// takes branches with a known condition and visits the body of a loop with a known trip count once. Implausible sizes
// and functions nested too deeply are an Error; a node whose sizes cannot be inferred becomes a step with a failure.
#pragma once

#include "base/result.h"
#include "predict/graph/onnx/input_sizes.h"
#include "predict/graph/onnx/onnx_model.h"
#include "predict/graph/onnx/program.h"

namespace joulemap::predict::onnx {

// `program_at_file_batch` is the program of the same model with the file's batch, or null (FileBatchValues in shapes.h).
Result<Program> build_program(const Model& model, const InputSizes& inputs, const std::vector<Sizes>& sizes,
                              const Program* program_at_file_batch);

}  // namespace joulemap::predict::onnx
