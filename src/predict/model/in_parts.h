// SPDX-License-Identifier: Apache-2.0
//
// in_parts: the same work on many rows, on the processors that there are. The work is called from several threads at
// once, each with rows of its own, and has to write to nothing else; all of it is done when in_parts returns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <future>
#include <thread>
#include <vector>

namespace joulemap::predict {

// Fitting is short: more threads would hardly pay for their start.
inline constexpr std::size_t kMostParts = 4;

// `work(index)` for each index below `count`.
template <class Work>
void in_parts(std::size_t count, const Work& work) {
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
