// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the reader of Keras models: it must not crash, and the sizes in its graph must be small enough to multiply
// without overflow. The first byte selects the options.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "predict/graph/keras/keras_graph.h"

namespace {

using namespace joulemap;
using namespace joulemap::predict;

GraphOptions make_graph_options(std::uint8_t choice) {
  GraphOptions options;
  if ((choice & 1) != 0) options.batch = 8;
  if ((choice & 2) != 0) options.inputs = {{"", {1, 32, 32, 3}}};
  if ((choice & 4) != 0) options.dtype = Dtype::bf16;
  return options;
}

void check_model(const Graph& graph) {
  JOULEMAP_CHECK(!graph.operations.empty(), "a model without operations, not even its input");
  JOULEMAP_CHECK(graph.weight_tensor_count >= 0 && graph.weight_element_count >= graph.weight_tensor_count,
                 "weights without elements");
  std::size_t unknown = 0;
  for (const Operation& operation : graph.operations) {
    JOULEMAP_CHECK(!operation.layer.empty() || !operation.source.empty(), "an operation of nobody");
    JOULEMAP_CHECK(operation.count >= 1, "an operation that does not run");
    unknown += operation.kind == Kind::unknown ? 1 : 0;
    for (const auto& [name, value] : operation.parameters.entries()) {
      JOULEMAP_CHECK(value >= 0 && value <= 2 * kMaxElements, "a size that nobody believes");
    }
  }
  JOULEMAP_CHECK(unknown == graph.unknown_operations.size(), "unknown operations that are not listed");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Result<Graph> graph = read_keras(text, make_graph_options(data[0]));
  if (graph) check_model(*graph);
  return 0;
}
