// SPDX-License-Identifier: Apache-2.0
//
// Random: pseudo-random numbers for resampling, shuffles and simulations. Unlike the distributions of the standard
// library, they are identical with every compiler. The generator is SplitMix64 (Steele, Lea, Flood 2014): its n-th
// number is a function of seed and n alone, so that a CPU computes several at once, and drawing does not dominate
// resampling. A value type; one thread.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/hash.h"

namespace joulemap::statistics {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    state_ += kGoldenRatio64;
    return mix_bits(state_);
  }
  double uniform() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; }  // in (0, 1], never 0
  // An integer of 0 .. size - 1, size < 2^32; uniform to one part in 2^32.
  std::size_t uniform_below(std::size_t size) { return static_cast<std::size_t>(((bits() >> 32) * size) >> 32); }
  double exponential() { return -std::log(uniform()); }  // exponential distribution with mean 1
  double normal() { return std::sqrt(2 * exponential()) * std::cos(2 * M_PI * uniform()); }

  template <class Iterator>
  void shuffle(Iterator begin, Iterator end) {
    using Distance = typename std::iterator_traits<Iterator>::difference_type;
    for (Distance remaining_count = std::distance(begin, end); remaining_count > 1; --remaining_count) {
      const std::size_t other_index = uniform_below(static_cast<std::size_t>(remaining_count));
      std::swap(begin[remaining_count - 1], begin[static_cast<Distance>(other_index)]);
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace joulemap::statistics
