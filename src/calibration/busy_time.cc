// SPDX-License-Identifier: Apache-2.0
#include "calibration/busy_time.h"

#include <algorithm>
#include <cmath>

namespace joulemap::calibration {

BusyTime::BusyTime(std::span<const LoadSpan> loads) {
  if (loads.empty()) return;
  origin_ns_ = loads.front().begin_ns;
  double busy_ns = 0;
  for (const LoadSpan& load : loads) {
    load_edges_ns_.push_back(static_cast<double>(load.begin_ns - origin_ns_));
    busy_ns_before_edges_.push_back(busy_ns);
    load_edges_ns_.push_back(static_cast<double>(load.end_ns - origin_ns_));
    busy_ns_before_edges_.push_back(busy_ns += static_cast<double>(load.length_ns()));
  }
}

std::size_t BusyTime::count_edges_before(double time_ns) const {
  return static_cast<std::size_t>(std::upper_bound(load_edges_ns_.begin(), load_edges_ns_.end(), time_ns) -
                                  load_edges_ns_.begin());
}

double BusyTime::cumulative_busy_ns(double time_ns) const {
  const std::size_t edges = count_edges_before(time_ns);
  if (edges == 0) return 0;
  const bool is_busy = edges % 2 == 1;
  return busy_ns_before_edges_[edges - 1] + (is_busy ? time_ns - load_edges_ns_[edges - 1] : 0);
}

double BusyTime::busy_fraction(std::int64_t from_ns, double length_ns) const {
  const auto relative_begin_ns = static_cast<double>(from_ns - origin_ns_);
  return length_ns > 0
             ? (cumulative_busy_ns(relative_begin_ns + length_ns) - cumulative_busy_ns(relative_begin_ns)) / length_ns
             : 0;
}

BusyTime::ExponentialAverage::ExponentialAverage(const BusyTime& busy, double time_constant_ns)
    : busy_time_(&busy), time_constant_ns_(time_constant_ns) {
  double value = 0;
  for (std::size_t i = 0; i < busy.load_edges_ns_.size(); ++i) {
    const double target_load = i % 2 == 1 ? 1 : 0;  // load before this edge: 1 if the edge is the end of a load
    const double since_ns = i == 0 ? 0 : busy.load_edges_ns_[i] - busy.load_edges_ns_[i - 1];
    value = target_load + (value - target_load) * std::exp(-since_ns / time_constant_ns);
    averages_at_edges_.push_back(value);
  }
}

double BusyTime::ExponentialAverage::average_at(std::int64_t time_ns) const {
  const auto time = static_cast<double>(time_ns - busy_time_->origin_ns_);
  const std::size_t edges = busy_time_->count_edges_before(time);
  if (edges == 0) return 0;
  const double target_load = edges % 2 == 1 ? 1 : 0;
  return target_load + (averages_at_edges_[edges - 1] - target_load) *
                           std::exp(-(time - busy_time_->load_edges_ns_[edges - 1]) / time_constant_ns_);
}

}  // namespace joulemap::calibration
