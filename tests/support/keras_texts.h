// SPDX-License-Identifier: Apache-2.0
//
// Hand-written Keras models as JSON texts, and operations as lines for comparisons.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "predict/graph/keras/keras_graph.h"

namespace joulemap::predict {

// {"class_name": "Dense", "config": {"name": "dense", "units": 3}}; `additional_config` follows the name in config.
inline std::string keras_layer(std::string_view class_name, std::string_view name,
                               std::string_view additional_config = "") {
  return fmt::format(R"({{"class_name": "{}", "config": {{"name": "{}"{}{}}}}})", class_name, name,
                     additional_config.empty() ? "" : ", ", additional_config);
}

// A model with an input of this shape, including the batch: "[null, 8]".
inline std::string keras_sequential(std::string_view input_shape, const std::vector<std::string>& layers,
                                    std::string_view name = "model") {
  std::string layers_text = keras_layer("InputLayer", "input", fmt::format(R"("batch_shape": {})", input_shape));
  for (const std::string& layer : layers) layers_text += ", " + layer;
  return fmt::format(R"({{"class_name": "Sequential", "config": {{"name": "{}", "layers": [{}]}}}})", name,
                     layers_text);
}

inline std::string format_operation(const Operation& operation) {
  const std::string times = operation.count == 1 ? "" : fmt::format(" x{}", operation.count);
  return fmt::format("{} {} {}{}", operation.layer, name_of(operation.kind), parameters_text(operation), times);
}

// All operations but the input.
inline std::vector<std::string> format_operations(const Graph& graph) {
  std::vector<std::string> lines;
  for (const Operation& operation : graph.operations) {
    if (operation.kind != Kind::input) lines.push_back(format_operation(operation));
  }
  return lines;
}

inline Operation find_operation(const Graph& graph, std::string_view layer, Kind kind) {
  for (const Operation& operation : graph.operations) {
    if (operation.layer == layer && operation.kind == kind) return operation;
  }
  return {};
}

}  // namespace joulemap::predict
