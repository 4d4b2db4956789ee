// SPDX-License-Identifier: Apache-2.0
//
// Order statistics of all pairwise sums of one list, or of all pairwise differences of two lists: the values from which
// Hodges-Lehmann estimates and their intervals are chosen. They are never stored: counting the values up to a limit
// takes one linear pass over sorted lists, and a bisection over the limit finds the k-th. Pure; any thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "statistics/effect_size.h"
#include "statistics/rank_distributions.h"

namespace joulemap::statistics {

// Maps doubles to integers of the same order, and back. A bisection over these integers ends after at most 64 steps, at
// the exact double.
inline std::int64_t to_ordered_bits(double value) {
  const auto bits = std::bit_cast<std::int64_t>(value);
  return bits < 0 ? std::numeric_limits<std::int64_t>::min() - bits : bits;
}
inline double from_ordered_bits(std::int64_t bits) {
  return std::bit_cast<double>(bits < 0 ? std::numeric_limits<std::int64_t>::min() - bits : bits);
}

// All sums of two values of one list, including each value with itself.
class PairSums {
 public:
  explicit PairSums(std::vector<double> values) : sorted_values_(std::move(values)) {
    std::ranges::sort(sorted_values_);
  }
  std::size_t size() const { return sorted_values_.size() * (sorted_values_.size() + 1) / 2; }
  double least() const { return sorted_values_.front() + sorted_values_.front(); }
  double greatest() const { return sorted_values_.back() + sorted_values_.back(); }
  std::size_t count_at_most(double limit) const {
    std::size_t count = 0;
    std::size_t end = sorted_values_.size();
    for (std::size_t i = 0; i < end; ++i) {
      while (end > i && sorted_values_[i] + sorted_values_[end - 1] > limit) --end;
      count += end - i;
    }
    return count;
  }

 private:
  std::vector<double> sorted_values_;
};

// All differences of a value of the first list and one of the second.
class PairDifferences {
 public:
  PairDifferences(std::span<const double> first_values, std::span<const double> second_values)
      : sorted_first_values_(first_values.begin(), first_values.end()),
        sorted_second_values_(second_values.begin(), second_values.end()) {
    std::ranges::sort(sorted_first_values_);
    std::ranges::sort(sorted_second_values_);
  }
  std::size_t size() const { return sorted_first_values_.size() * sorted_second_values_.size(); }
  double least() const { return sorted_first_values_.front() - sorted_second_values_.back(); }
  double greatest() const { return sorted_first_values_.back() - sorted_second_values_.front(); }
  std::size_t count_at_most(double limit) const {
    std::size_t count = 0;
    std::size_t begin = 0;
    for (const double value : sorted_first_values_) {
      while (begin < sorted_second_values_.size() && value - sorted_second_values_[begin] > limit) ++begin;
      count += sorted_second_values_.size() - begin;
    }
    return count;
  }

 private:
  std::vector<double> sorted_first_values_;
  std::vector<double> sorted_second_values_;
};

// The k-th smallest of all pair sums or differences, counted from 1.
template <class Pairs>
double kth_smallest(const Pairs& pairs, std::size_t k) {
  std::int64_t low = to_ordered_bits(pairs.least());
  std::int64_t high = to_ordered_bits(pairs.greatest());
  while (low < high) {
    const std::int64_t midpoint = std::midpoint(low, high);
    if (pairs.count_at_most(from_ordered_bits(midpoint)) >= k) {
      high = midpoint;
    } else {
      low = midpoint + 1;
    }
  }
  return from_ordered_bits(low);
}

template <class Pairs>
double median_of_pairs(const Pairs& pairs) {
  const std::size_t size = pairs.size();
  const double upper_median = kth_smallest(pairs, size / 2 + 1);
  return size % 2 == 1 ? upper_median : (kth_smallest(pairs, size / 2) + upper_median) / 2;
}

// The pairs of several strata as one list, in which each pair of a stratum is repeated as often as the stratum's
// weight.
template <class Pairs>
class WeightedPairStrata {
 public:
  void add(Pairs pairs, std::size_t weight) {
    size_ += weight * pairs.size();
    smallest_value_ = strata_.empty() ? pairs.least() : std::min(smallest_value_, pairs.least());
    largest_value_ = strata_.empty() ? pairs.greatest() : std::max(largest_value_, pairs.greatest());
    strata_.emplace_back(std::move(pairs), weight);
  }
  std::size_t size() const { return size_; }
  double least() const { return smallest_value_; }
  double greatest() const { return largest_value_; }
  std::size_t count_at_most(double limit) const {
    std::size_t count = 0;
    for (const auto& [pairs, weight] : strata_) count += weight * pairs.count_at_most(limit);
    return count;
  }

 private:
  std::vector<std::pair<Pairs, std::size_t>> strata_;
  std::size_t size_ = 0;
  double smallest_value_ = 0;
  double largest_value_ = 0;
};

// `critical`: the largest rank sum that the test rejects; empty if it rejects none. Then the interval spans all pairs,
// and `least_tail`, the one-sided probability of the most extreme outcome, gives its confidence.
template <class Pairs>
EffectEstimate estimate_shift(const Pairs& pairs, std::optional<CriticalValue> critical, double least_tail) {
  const std::size_t k = critical ? critical->critical_sum + 1 : 1;
  return {median_of_pairs(pairs), kth_smallest(pairs, k), kth_smallest(pairs, pairs.size() + 1 - k),
          1 - 2 * (critical ? critical->tail_probability : least_tail)};
}

}  // namespace joulemap::statistics
