// SPDX-License-Identifier: Apache-2.0
//
// The kernels that ran in CUDA graphs, and which operation each is of (graph_kernels.h says how that is found). They are
// gathered while a trace is read, because a stream has them in the order of time and a graph in that of its nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ingest/trace.h"
#include "ingest/xplane/xplane_operations.h"

namespace joulemap::ingest {

struct GraphKernel {
  XPlaneOperations::Graph graph;
  std::int64_t node = 0;  // of the graph
  std::string_view name;
  TraceEvent event;
  std::optional<std::uint32_t> operation;  // what is found
};

// Sorts them by graph, launch and node, and sets their operations. Gives the number of those that fit no program.
std::uint64_t find_operations_of_graphs(std::vector<GraphKernel>& kernels, XPlaneOperations& operations);

}  // namespace joulemap::ingest
