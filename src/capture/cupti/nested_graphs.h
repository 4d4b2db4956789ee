// SPDX-License-Identifier: Apache-2.0
//
// NestedGraphs: finds out what the kernels of graphs within graphs stand for. CUPTI tells of each node that is made or
// copied, and a kernel's record names its node; but when a graph is made executable, nodes of graphs nested in it become
// nodes of the outer one of which CUPTI tells nothing. (XLA's command buffers nest one for each matrix product.) Seen on
// CUDA 13:
//
// - A node's number is its graph's (upper half) and its index in it. An executable graph has as many indices that nobody
//   told of as it has nested nodes, and in the same order. Where the counts differ, nothing is guessed.
// - When such nodes are given new parameters, CUPTI names the nodes they come from just before, in the same order.
//
// Any thread; what belongs together happens on one. Under a lock.
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

class NestedGraphs {
 public:
  using NodePair = std::pair<std::uint64_t, std::uint64_t>;  // a node that was told, and one that stands for the same

  void on_created(std::uint64_t node);
  void on_copied(std::uint64_t original, std::uint64_t copy);
  // An executable was made of that graph.
  std::vector<NodePair> on_executable(std::uint32_t graph);

  void on_updated(std::uint64_t node);
  bool update_is_open() const;
  std::optional<NodePair> on_parameters_set(std::uint64_t node);

 private:
  struct Thread {
    std::vector<std::uint64_t> created;  // since the last executable
    std::vector<NodePair> copied;
    std::deque<std::uint64_t> updated;  // whose copies have not been given parameters yet
  };

  mutable std::mutex lock_;
  std::unordered_map<std::thread::id, Thread> threads_;
};

}  // namespace joulemap::capture::cupti
