// SPDX-License-Identifier: Apache-2.0
//
// Removes every other value of a growing series in place, so that a series of any length fits into bounded memory.
// Meant for cumulative values: those that remain are exact. The first value and the latest ones are never removed.
// Pure.
#pragma once

#include <cstddef>
#include <vector>

namespace joulemap {

// Number of latest values that are never removed: they may still change, or be queried at full resolution.
inline constexpr std::size_t kUnthinnedValueCount = 4096;

// `is_needed(previous, value)` returns whether the value must stay. Does nothing to a series of at most
// kUnthinnedValueCount + 2 values.
template <class Value, class IsNeeded>
void thin_series(std::vector<Value>& values, const IsNeeded& is_needed) {
  if (values.size() <= kUnthinnedValueCount + 2) return;
  const std::size_t thinned_end = values.size() - kUnthinnedValueCount;
  std::size_t kept_count = 1;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const bool is_kept = i >= thinned_end || i % 2 == 0 || is_needed(values[i - 1], values[i]);
    if (is_kept) values[kept_count++] = values[i];
  }
  values.resize(kept_count);
}

}  // namespace joulemap
