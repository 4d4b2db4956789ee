// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/nested_graphs.h"

#include <algorithm>

namespace joulemap::capture::cupti {
namespace {

constexpr std::size_t kMaxPendingNodesPerThread =
    1 << 20;  // limit for a thread that creates graphs and never instantiates one
constexpr std::size_t kMaxTrackedThreads = 1024;

std::uint32_t graph_id_of_node(std::uint64_t node) { return static_cast<std::uint32_t>(node >> 32); }
std::uint32_t node_index_in_graph(std::uint64_t node) { return static_cast<std::uint32_t>(node); }

// Returns the nodes of a graph whose creation was not reported, up to its last reported index; at most about `max_nodes`.
std::vector<std::uint64_t> find_unreported_nodes(const std::vector<std::uint64_t>& created, std::uint32_t graph,
                                                 std::size_t max_nodes) {
  std::vector<std::uint32_t> indices;
  for (const std::uint64_t node : created) {
    if (graph_id_of_node(node) == graph) indices.push_back(node_index_in_graph(node));
  }
  std::sort(indices.begin(), indices.end());
  std::vector<std::uint64_t> unreported_nodes;
  std::uint32_t expected = 0;
  for (const std::uint32_t index : indices) {
    for (; expected < index && unreported_nodes.size() <= max_nodes; ++expected) {
      unreported_nodes.push_back(std::uint64_t{graph} << 32 | expected);
    }
    expected = index + 1;
  }
  return unreported_nodes;
}

}  // namespace

void NestedGraphTracker::on_node_created(std::uint64_t node) {
  const std::lock_guard hold(lock_);
  if (nodes_by_thread_.size() >= kMaxTrackedThreads) nodes_by_thread_.clear();
  ThreadNodes& thread = nodes_by_thread_[std::this_thread::get_id()];
  if (thread.created_nodes.size() < kMaxPendingNodesPerThread) thread.created_nodes.push_back(node);
}

void NestedGraphTracker::on_node_copied(std::uint64_t original_node, std::uint64_t copied_node) {
  const std::lock_guard hold(lock_);
  ThreadNodes& thread = nodes_by_thread_[std::this_thread::get_id()];
  if (thread.copied_nodes.size() < kMaxPendingNodesPerThread)
    thread.copied_nodes.emplace_back(original_node, copied_node);
}

std::vector<NestedGraphTracker::NodePair> NestedGraphTracker::on_graph_instantiated(std::uint32_t graph) {
  const std::lock_guard hold(lock_);
  const ThreadNodes thread = std::exchange(nodes_by_thread_[std::this_thread::get_id()], {});
  const auto outer_pair = std::find_if(thread.copied_nodes.rbegin(), thread.copied_nodes.rend(),
                                       [&](const NodePair& pair) { return graph_id_of_node(pair.first) == graph; });
  if (outer_pair == thread.copied_nodes.rend()) return {};
  const std::uint32_t executable = graph_id_of_node(outer_pair->second);
  // Graph ids increase: graphs nested in the executable were copied after its creation began.
  std::vector<std::uint64_t> nested;
  for (const auto& [original_node, copied_node] : thread.copied_nodes) {
    if (graph_id_of_node(copied_node) > executable) nested.push_back(copied_node);
  }
  const std::vector<std::uint64_t> unknown = find_unreported_nodes(thread.created_nodes, executable, nested.size());
  if (nested.size() != unknown.size()) return {};
  std::vector<NodePair> pairs;
  for (std::size_t i = 0; i < nested.size(); ++i) pairs.emplace_back(nested[i], unknown[i]);
  return pairs;
}

void NestedGraphTracker::on_node_updated(std::uint64_t node) {
  const std::lock_guard hold(lock_);
  std::deque<std::uint64_t>& nodes_awaiting_parameters =
      nodes_by_thread_[std::this_thread::get_id()].originals_awaiting_parameters;
  if (nodes_awaiting_parameters.size() < kMaxPendingNodesPerThread) nodes_awaiting_parameters.push_back(node);
}

bool NestedGraphTracker::has_pending_update() const {
  const std::lock_guard hold(lock_);
  const auto thread = nodes_by_thread_.find(std::this_thread::get_id());
  return thread != nodes_by_thread_.end() && !thread->second.originals_awaiting_parameters.empty();
}

std::optional<NestedGraphTracker::NodePair> NestedGraphTracker::on_node_parameters_set(std::uint64_t node) {
  const std::lock_guard hold(lock_);
  std::deque<std::uint64_t>& nodes_awaiting_parameters =
      nodes_by_thread_[std::this_thread::get_id()].originals_awaiting_parameters;
  if (nodes_awaiting_parameters.empty()) return std::nullopt;
  const NodePair pair{nodes_awaiting_parameters.front(), node};
  nodes_awaiting_parameters.pop_front();
  return pair;
}

}  // namespace joulemap::capture::cupti
