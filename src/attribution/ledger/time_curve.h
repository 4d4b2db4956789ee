// SPDX-License-Identifier: Apache-2.0
//
// TimeCurve: an amount (joules, CPU seconds) over a span of time, in equal cells. add() spreads an amount evenly over
// its interval; amount_between() cuts cells proportionally. Memory depends on the number of cells only. Pure;
// CLOCK_MONOTONIC nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/time_points.h"

namespace joulemap::attribution {

// Cumulative CPU seconds at the time of a reading.
struct CpuTimePoint {
  std::int64_t time_ns = 0;
  double used_cpu_s = 0;
};

class TimeCurve {
 public:
  TimeCurve() = default;
  TimeCurve(TimeSpan span, std::size_t cells);

  // Cuts off parts outside the span.
  void add(std::int64_t from_ns, std::int64_t to_ns, double interval_amount);
  void scale(double factor);
  // Call after the last add(), set() or scale(): before it, amount_between() and total() do not include the changes.
  void finish();

  double total() const { return cumulative_sums_.empty() ? 0 : cumulative_sums_.back(); }
  // The amount between two moments, within the span.
  double amount_between(std::int64_t from_ns, std::int64_t to_ns) const;
  // The same, divided by that time in seconds; 0 for no time.
  double mean_rate(std::int64_t from_ns, std::int64_t to_ns) const;

  std::size_t size() const { return cells_.size(); }
  double operator[](std::size_t cell) const { return cells_[cell]; }
  void set(std::size_t cell, double cell_amount) { cells_[cell] = cell_amount; }
  double cell_s() const;
  TimeSpan span() const { return span_; }

 private:
  double cell_position(std::int64_t time_ns) const;  // in cells, within the span
  double cumulative_amount_at(double position) const;

  TimeSpan span_;
  double cell_ns_ = 1;
  std::vector<double> cells_;
  std::vector<double> cumulative_sums_;  // cumulative_sums_[i]: sum of the cells before i
};

// Number of cells for a span: cells of 10 ms, or longer ones in spans of more than half an hour.
std::size_t cell_count_for_span(TimeSpan span);

}  // namespace joulemap::attribution
