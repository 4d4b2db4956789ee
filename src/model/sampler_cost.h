// SPDX-License-Identifier: Apache-2.0
//
// SamplerCost: timeliness and cost of reading one sensor. Plain data; part of the results of stat, record and
// calibrate, because a profiler must report its own overhead.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>

namespace joulemap {

// Histogram of delays. Upper bounds of the bins are powers of two in microseconds: 1, 2, 4 ...; the last bin is
// unbounded.
class DelayHistogram {
 public:
  void add(std::int64_t delay_ns) noexcept {
    const auto delay_us = static_cast<std::uint64_t>(delay_ns > 0 ? delay_ns / 1000 : 0);
    const auto index = static_cast<std::size_t>(std::bit_width(delay_us));
    ++counts_[index < counts_.size() ? index : counts_.size() - 1];
    if (delay_ns > longest_ns_) longest_ns_ = delay_ns;
    ++delay_count_;
  }
  std::uint64_t delay_count() const { return delay_count_; }
  std::int64_t longest_ns() const { return longest_ns_; }
  // Upper bound of the delay that a fraction `share` of all delays does not exceed; the longest delay for 1, and 0 for
  // an empty histogram.
  std::int64_t percentile_ns(double share) const noexcept {
    const double target_count = share * static_cast<double>(delay_count_);
    double cumulative_count = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      cumulative_count += static_cast<double>(counts_[i]);
      const std::int64_t bucket_bound_ns = (std::int64_t{1} << i) * 1000;
      if (cumulative_count >= target_count && i + 1 < counts_.size())
        return bucket_bound_ns < longest_ns_ ? bucket_bound_ns : longest_ns_;
    }
    return longest_ns_;
  }

 private:
  std::array<std::uint64_t, 24> counts_{};
  std::uint64_t delay_count_ = 0;
  std::int64_t longest_ns_ = 0;
};

struct SamplerCost {
  std::string sensor;  // names of the backend and the device
  std::int64_t cpu_ns = 0;
  std::uint64_t reads = 0;
  std::uint64_t missed_ticks = 0;  // reads that were dropped, because an earlier read took too long
  std::uint64_t lost_samples = 0;  // samples that the full ring buffer overwrote before they were fetched
  DelayHistogram lateness;         // from the deadline of a read to its start
};

}  // namespace joulemap
