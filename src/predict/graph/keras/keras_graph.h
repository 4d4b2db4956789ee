// SPDX-License-Identifier: Apache-2.0
//
// A Keras model as a list of operations: the text of model.to_json(), of Keras 3 and of Keras 2 (tf.keras). Pure; reads no
// weights and runs nothing; the text is not kept.
//
// - The list is what inference runs. Two things are there for training: dropout, which inference does not run, and
//   `frozen` 1 of a batch normalization that keeps its statistics when it is trained (form batch-inference in both).
// - `layer` is the layer's name, within nested models with theirs before it: "encoder.conv1". `source` is its class.
// - A layer may be several operations: a Dense with its activation, an LSTM step by step (`count`).
// - Inputs of the model are Kind::input: what has to be copied to the device.
// - What has no rule is Kind::unknown; it gives what the text says that it gives, else what came in.
#pragma once

#include <string_view>

#include "base/result.h"
#include "predict/graph/graph.h"

namespace joulemap::predict {

Result<Graph> read_keras(std::string_view json, const GraphOptions& options);

}  // namespace joulemap::predict
