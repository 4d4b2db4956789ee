// SPDX-License-Identifier: Apache-2.0
//
// parallel_for: a parallel for over row indices. Several threads call the work at once, each with indices of its own; the
// work must not write to shared state. All work is done when parallel_for returns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <future>
#include <thread>
#include <vector>

namespace joulemap::predict {

// Fitting is short: more threads would cost more to start than they save.
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
