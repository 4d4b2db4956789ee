// SPDX-License-Identifier: Apache-2.0
//
// NestedGraphTracker: maps nodes of nested CUDA graphs to the nodes they were copied from. CUPTI reports each node that
// is created or copied, and a kernel's record names its node. But when a graph is instantiated, the nodes of nested
// graphs become unreported nodes of the outer graph. (XLA's command buffers nest one graph for each matrix product.)
// Observed on CUDA 13:
//
// - A node's id consists of its graph's id (upper half) and its index. An executable graph has as many unreported
//   indices as nested nodes, in the same order. Where the counts differ, no mapping is made.
// - When such nodes get new parameters, CUPTI names their original nodes just before, in the same order.
//
// Thread-safe. Related callbacks run on the same thread.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace joulemap::capture::cupti {

class NestedGraphTracker {
 public:
  using NodePair = std::pair<std::uint64_t, std::uint64_t>;  // a reported node and the unreported one it became

  void on_node_created(std::uint64_t node);
  void on_node_copied(std::uint64_t original_node, std::uint64_t copied_node);
  // Called when an executable graph was instantiated from `graph`. Returns the nested nodes and what they became; none
  // when their counts differ.
  std::vector<NodePair> on_graph_instantiated(std::uint32_t graph);

  void on_node_updated(std::uint64_t node);
  bool has_pending_update() const;
  std::optional<NodePair> on_node_parameters_set(std::uint64_t node);

 private:
  struct ThreadNodes {
    std::vector<std::uint64_t> created_nodes;  // by this thread since it last instantiated a graph
    std::vector<NodePair> copied_nodes;
    std::deque<std::uint64_t> originals_awaiting_parameters;  // originals whose copies await new parameters
  };

  mutable std::mutex lock_;
  std::unordered_map<std::thread::id, ThreadNodes> nodes_by_thread_;
};

}  // namespace joulemap::capture::cupti
