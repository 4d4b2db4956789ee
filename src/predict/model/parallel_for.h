// SPDX-License-Identifier: Apache-2.0
//
// parallel_for: a parallel loop over indices. Up to kMaxThreads threads, including the caller's, call the work at once
// with different indices; the work may write only to elements of its own index. All work is done when parallel_for
// returns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <future>
#include <thread>
#include <vector>

namespace joulemap::predict {

// More threads would cost more to start than they save, because fits are short.
inline constexpr std::size_t kMaxThreads = 4;

// Calls `work(index)` for each index below `count`.
template <class Work>
void parallel_for(std::size_t count, const Work& work) {
  const std::size_t thread_count = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMaxThreads);
  std::vector<std::future<void>> futures;
  const auto run_part = [&](std::size_t number) {
    for (std::size_t index = count * number / thread_count; index < count * (number + 1) / thread_count; ++index)
      work(index);
  };
  for (std::size_t number = 1; number < thread_count; ++number)
    futures.push_back(std::async(std::launch::async, run_part, number));
  run_part(0);
  for (std::future<void>& future : futures) future.get();
}

}  // namespace joulemap::predict
