// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/graph_launches.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "ingest/kernel_details.h"

namespace joulemap::ingest {
namespace {

// Sort key by graph, launch and node. Graphs of a program are in the order of their numbers, as in its schedule.
auto launch_sort_key(const GraphKernel& kernel) {
  const std::size_t digits = kernel.cuda_graph.name.find_last_not_of("0123456789") + 1;
  return std::tuple(kernel.cuda_graph.program, kernel.cuda_graph.module,
                    parse_leading_number(kernel.cuda_graph.name.substr(digits)), kernel.cuda_graph.name,
                    kernel.kernel_event.correlation, kernel.node_id);
}

bool is_same_launch(const GraphKernel& a, const GraphKernel& b) {
  return a.cuda_graph == b.cuda_graph && a.kernel_event.correlation == b.kernel_event.correlation;
}

}  // namespace

// All launches of a graph have the same kernels, so each list of kernels is matched once.
std::uint64_t assign_graph_operations(std::vector<GraphKernel>& kernels, XPlaneOperations& operations) {
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const GraphKernel& a, const GraphKernel& b) { return launch_sort_key(a) < launch_sort_key(b); });
  using OperationsOfLaunch = std::optional<std::vector<std::uint32_t>>;
  std::map<std::pair<XPlaneOperations::CudaGraphKey, std::vector<std::string_view>>, OperationsOfLaunch>
      operations_by_launch;
  std::uint64_t unknown = 0;
  for (std::size_t begin = 0, end = 0; begin < kernels.size(); begin = end) {
    std::vector<std::string_view> names;
    for (; end < kernels.size() && is_same_launch(kernels[begin], kernels[end]); ++end) {
      names.push_back(kernels[end].name);
    }
    const auto [slot, is_new] = operations_by_launch.try_emplace({kernels[begin].cuda_graph, names});
    if (is_new) slot->second = operations.find_graph_operations(kernels[begin].cuda_graph, names);
    if (!slot->second) unknown += names.size();
    for (std::size_t i = begin; slot->second && i < end; ++i) kernels[i].operation_index = (*slot->second)[i - begin];
  }
  return unknown;
}

}  // namespace joulemap::ingest
