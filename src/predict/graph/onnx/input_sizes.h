// SPDX-License-Identifier: Apache-2.0
//
// The sizes of a model's inputs: those of the file, with what was asked for instead of them and of symbols. A pure
// function; a size that nobody knows is an Error that names the input and says how to give it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "predict/graph/graph.h"
#include "predict/graph/onnx/onnx_model.h"

namespace joulemap::predict::onnx {

struct InputSizes {
  std::vector<const ValueInfo*> inputs;  // those that are not weights
  std::vector<Sizes> sizes;
  // With the batch of the file, where that is fixed and another was asked for; else empty.
  std::vector<Sizes> file_sizes;
  std::unordered_map<std::string_view, std::int64_t> symbols;
  std::vector<std::string> notes;
};

Result<InputSizes> input_sizes(const Body& graph, const GraphOptions& options);

}  // namespace joulemap::predict::onnx
