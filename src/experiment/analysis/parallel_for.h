// SPDX-License-Identifier: Apache-2.0
//
// parallel_for: calls work(i) for every index i below `count`, on several threads. Each call must write only data that
// belongs to its index, so that the result does not depend on the number of threads. Returns when all calls have
// returned; the calls must not throw.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace joulemap::experiment {

// `threads`: 0 for one per CPU.
template <class Work>
void parallel_for(std::size_t count, unsigned threads, const Work& work) {
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t workers = std::min<std::size_t>(threads, count);
  std::atomic<std::size_t> next_index{0};
  const auto run = [&] {
    for (std::size_t i = next_index.fetch_add(1); i < count; i = next_index.fetch_add(1)) work(i);
  };
  std::vector<std::jthread> helper_threads;
  for (std::size_t i = 1; i < workers; ++i) helper_threads.emplace_back(run);
  run();
}

}  // namespace joulemap::experiment
