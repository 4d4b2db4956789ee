// SPDX-License-Identifier: Apache-2.0
//
// Sizes of a model's inputs: those of the file, overridden by requested sizes and symbol values. Pure. The Error for an
// unknown size names the input and how to specify it.
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
  std::vector<const ValueInfo*> input_infos;  // inputs of the graph that are not weights
  std::vector<Sizes> resolved_sizes;
  // The file's own sizes, if all of them are fixed and differ from `resolved_sizes`; else empty.
  std::vector<Sizes> sizes_in_file;
  std::unordered_map<std::string_view, std::int64_t> size_by_symbol;
  std::vector<std::string> notes;
};

Result<InputSizes> input_sizes(const GraphBody& graph, const GraphOptions& options);

}  // namespace joulemap::predict::onnx
