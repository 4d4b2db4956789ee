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
inline constexpr std::size_t kMostParts = 4;

// Calls `work(index)` for each index below `count`.
template <class Work>
void parallel_for(std::size_t count, const Work& work) {
  const std::size_t parts = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMostParts);
  std::vector<std::future<void>> others;
  const auto part = [&](std::size_t number) {
    for (std::size_t index = count * number / parts; index < count * (number + 1) / parts; ++index) work(index);
  };
  for (std::size_t number = 1; number < parts; ++number) others.push_back(std::async(std::launch::async, part, number));
  part(0);
  for (std::future<void>& other : others) other.get();
}

}  // namespace joulemap::predict
