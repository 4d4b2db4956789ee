// SPDX-License-Identifier: Apache-2.0
//
// TimeCurve: an amount (joules, CPU seconds) spread over a span of time, in equal cells. What is added is spread evenly over
// its time; what is asked for is cut out likewise. Memory is that of the cells, however much is added. Pure; CLOCK_MONOTONIC
// nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/time_points.h"

namespace joulemap::attribution {

// CPU seconds that had been used at the moment of a reading.
struct CpuTimePoint {
  std::int64_t time_ns = 0;
  double used_s = 0;
};

class TimeCurve {
 public:
  TimeCurve() = default;
  TimeCurve(TimeSpan span, std::size_t cells);

  // Parts outside of the span are cut off.
  void add(std::int64_t from_ns, std::int64_t to_ns, double amount);
  void scale(double factor);
  // Once nothing will be added any more: makes between() and total() cheap.
  void finish();

  double total() const { return sums_.empty() ? 0 : sums_.back(); }
  // What lies between two moments, in the span.
  double between(std::int64_t from_ns, std::int64_t to_ns) const;
  // The same, divided by that time in seconds; 0 for no time.
  double mean_rate(std::int64_t from_ns, std::int64_t to_ns) const;

  std::size_t size() const { return cells_.size(); }
  double operator[](std::size_t cell) const { return cells_[cell]; }
  void set(std::size_t cell, double amount) { cells_[cell] = amount; }
  double cell_s() const;
  TimeSpan span() const { return span_; }

 private:
  double position(std::int64_t time_ns) const;  // in cells, within the span
  double until(double position) const;

  TimeSpan span_;
  double cell_ns_ = 1;
  std::vector<double> cells_;
  std::vector<double> sums_;  // sums_[i]: of the cells before i
};

// As many cells as make sense for that time: fine enough for a GPU's counter, few enough for three days.
std::size_t cells_for(TimeSpan span);

}  // namespace joulemap::attribution
