// SPDX-License-Identifier: Apache-2.0
//
// Assigns the kernels that ran in CUDA graphs to operations (method: graph_kernels.h). They are collected while a trace
// is read and assigned at the end: the trace has them in time order, but the method needs them in node order.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ingest/trace.h"
#include "ingest/xplane/xplane_operations.h"

namespace joulemap::ingest {

struct GraphKernel {
  XPlaneOperations::CudaGraphKey cuda_graph;
  std::int64_t node_id = 0;  // id of the kernel's node in the graph
  std::string_view name;
  TraceEvent kernel_event;
  std::optional<std::uint32_t>
      operation_index;  // number in XPlaneOperations; assign_graph_operations() sets it if known
};

// Sorts the kernels by graph, launch and node, and sets their operations. Returns the number of kernels that do not
// match their program.
std::uint64_t assign_graph_operations(std::vector<GraphKernel>& kernels, XPlaneOperations& operations);

}  // namespace joulemap::ingest
