// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/nested_graphs.h"

#include <algorithm>

namespace joulemap::capture::cupti {
namespace {

constexpr std::size_t kMaxPending = 1 << 20;  // limit for a thread that creates graphs and never instantiates one
constexpr std::size_t kMaxThreads = 1024;

std::uint32_t graph_of(std::uint64_t node) { return static_cast<std::uint32_t>(node >> 32); }
std::uint32_t index_of(std::uint64_t node) { return static_cast<std::uint32_t>(node); }

// Returns the nodes of a graph whose creation was not reported, up to its last reported index; at most about `most`.
std::vector<std::uint64_t> unreported_nodes(const std::vector<std::uint64_t>& created, std::uint32_t graph,
                                            std::size_t most) {
  std::vector<std::uint32_t> indices;
  for (const std::uint64_t node : created) {
    if (graph_of(node) == graph) indices.push_back(index_of(node));
  }
  std::sort(indices.begin(), indices.end());
  std::vector<std::uint64_t> missing;
  std::uint32_t expected = 0;
  for (const std::uint32_t index : indices) {
    for (; expected < index && missing.size() <= most; ++expected) {
      missing.push_back(std::uint64_t{graph} << 32 | expected);
    }
    expected = index + 1;
  }
  return missing;
}

}  // namespace

void NestedGraphs::on_node_created(std::uint64_t node) {
  const std::lock_guard hold(lock_);
  if (threads_.size() >= kMaxThreads) threads_.clear();
  ThreadNodes& thread = threads_[std::this_thread::get_id()];
  if (thread.created.size() < kMaxPending) thread.created.push_back(node);
}

void NestedGraphs::on_node_copied(std::uint64_t original, std::uint64_t copy) {
  const std::lock_guard hold(lock_);
  ThreadNodes& thread = threads_[std::this_thread::get_id()];
  if (thread.copied.size() < kMaxPending) thread.copied.emplace_back(original, copy);
}

std::vector<NestedGraphs::NodePair> NestedGraphs::on_instantiated(std::uint32_t graph) {
  const std::lock_guard hold(lock_);
  const ThreadNodes thread = std::exchange(threads_[std::this_thread::get_id()], {});
  const auto outer = std::find_if(thread.copied.rbegin(), thread.copied.rend(),
                                  [&](const NodePair& pair) { return graph_of(pair.first) == graph; });
  if (outer == thread.copied.rend()) return {};
  const std::uint32_t executable = graph_of(outer->second);
  // Graph ids increase: graphs nested in the executable were copied after its creation began.
  std::vector<std::uint64_t> nested;
  for (const auto& [original, copy] : thread.copied) {
    if (graph_of(copy) > executable) nested.push_back(copy);
  }
  const std::vector<std::uint64_t> unknown = unreported_nodes(thread.created, executable, nested.size());
  if (nested.size() != unknown.size()) return {};
  std::vector<NodePair> pairs;
  for (std::size_t i = 0; i < nested.size(); ++i) pairs.emplace_back(nested[i], unknown[i]);
  return pairs;
}

void NestedGraphs::on_node_updated(std::uint64_t node) {
  const std::lock_guard hold(lock_);
  std::deque<std::uint64_t>& updated = threads_[std::this_thread::get_id()].updated;
  if (updated.size() < kMaxPending) updated.push_back(node);
}

bool NestedGraphs::has_pending_update() const {
  const std::lock_guard hold(lock_);
  const auto thread = threads_.find(std::this_thread::get_id());
  return thread != threads_.end() && !thread->second.updated.empty();
}

std::optional<NestedGraphs::NodePair> NestedGraphs::on_parameters_set(std::uint64_t node) {
  const std::lock_guard hold(lock_);
  std::deque<std::uint64_t>& updated = threads_[std::this_thread::get_id()].updated;
  if (updated.empty()) return std::nullopt;
  const NodePair pair{updated.front(), node};
  updated.pop_front();
  return pair;
}

}  // namespace joulemap::capture::cupti
