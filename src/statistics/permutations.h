// SPDX-License-Identifier: Apache-2.0
//
// Enumerates all permutations of a few values (Heap's algorithm), for exact p-values that have no faster algorithm. 8
// values have 40,320 permutations, 9 have 362,880. Pure; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace joulemap::statistics {

// Fraction of all permutations of `values` for which `reached()` is true. This function reorders `values` in place and
// calls `reached()` after each change.
template <class Reached>
double fraction_of_permutations(std::vector<std::int64_t>& values, Reached reached) {
  std::vector<std::size_t> swap_counts(values.size());
  std::uint64_t permutation_count = 1;
  std::uint64_t extreme_count = reached() ? 1 : 0;
  for (std::size_t i = 1; i < values.size();) {
    if (swap_counts[i] < i) {
      std::swap(values[i % 2 == 0 ? 0 : swap_counts[i]], values[i]);
      ++swap_counts[i];
      i = 1;
      ++permutation_count;
      extreme_count += reached() ? 1 : 0;
    } else {
      swap_counts[i++] = 0;
    }
  }
  return static_cast<double>(extreme_count) / static_cast<double>(permutation_count);
}

}  // namespace joulemap::statistics
