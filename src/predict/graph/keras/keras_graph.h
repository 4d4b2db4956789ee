// SPDX-License-Identifier: Apache-2.0
//
// Reads a Keras model as a list of operations, from the text of model.to_json() of Keras 3 and Keras 2 (tf.keras).
// Pure; reads no weights and runs nothing; the result does not refer to the text.
//
// - The list is what inference runs, with two additions for training: dropout operations, which inference skips, and
//   the parameter `frozen` 1 of a batch normalization that keeps its statistics in training.
// - `layer` is the layer's name, within nested models prefixed with theirs: "encoder.conv1". `source` is its class.
// - A layer may be several operations: a Dense with its activation, or the steps (`count`) of a recurrent layer that
//   cuDNN does not support.
// - Inputs of the model are Kind::input: data to copy to the device.
// - A layer without a rule is Kind::unknown; its output has the shape that the JSON declares, else that of its input.
#pragma once

#include <string_view>

#include "base/result.h"
#include "predict/graph/graph.h"

namespace joulemap::predict {

Result<Graph> read_keras(std::string_view json, const GraphOptions& options);

}  // namespace joulemap::predict
