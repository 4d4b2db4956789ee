// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the reader of ONNX files, with the file's batch size, another batch size and given input shapes. It must not
// crash, and the graph must be valid: no negative sizes except padding, and all unknown operations listed.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "predict/graph/onnx/onnx_graph.h"

namespace {

using joulemap::Result;
using joulemap::predict::Graph;
using joulemap::predict::Kind;
using joulemap::predict::Operation;

void check_graph(const Result<Graph>& graph) {
  if (!graph) {
    JOULEMAP_CHECK(!graph.error().message.empty(), "an error that says nothing");
    return;
  }
  const auto unknown = std::count_if(graph->operations.begin(), graph->operations.end(),
                                     [](const Operation& operation) { return operation.kind == Kind::unknown; });
  JOULEMAP_CHECK(static_cast<std::size_t>(unknown) == graph->unknown_operations.size(),
                 "an unknown operation that is not listed");
  for (const Operation& operation : graph->operations) {
    JOULEMAP_CHECK(operation.count >= 1, "an operation that is never run");
    for (const auto& [name, value] : operation.parameters.entries()) {
      JOULEMAP_CHECK(value >= 0 || name.substr(0, 7) == "padding", "a negative size");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_graph(joulemap::predict::read_onnx(bytes, {}));
  check_graph(joulemap::predict::read_onnx(bytes, {.batch = 3}));
  check_graph(joulemap::predict::read_onnx(bytes, {.inputs = {{"", {2, 3, 32, 32}}, {"", {2, 7}}}}));
  return 0;
}
