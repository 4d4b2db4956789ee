// SPDX-License-Identifier: Apache-2.0
//
// ChannelBehaviour: characterizes one channel from its readings: update period, update times, read duration, mean
// power. Readings come in order of time. It stores a value per reading, so it is meant for seconds of readings. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "energy/energy_accumulator.h"
#include "energy/update_time_estimator.h"
#include "model/channel.h"
#include "model/reading.h"

namespace joulemap {

class ChannelBehaviour {
 public:
  explicit ChannelBehaviour(const Channel& channel);

  void observe(const Reading& reading);

  struct UpdateTiming {
    double period_s = 0;
    double period_uncertainty_s =
        0;  // regular: half width of the interval that contains the period; else sd of the intervals
    bool is_regular = false;
  };
  // None when fewer than two intervals between changes were seen.
  std::optional<UpdateTiming> update_timing() const;

  // The last update before `time_ns`, which defines the phase of a regular channel; none if updates are not regular.
  std::optional<UpdateInterval> update_before(std::int64_t time_ns) const;

  std::optional<double> median_read_duration_s() const;
  double total_read_duration_s() const { return total_read_duration_s_; }
  std::uint64_t read_count() const { return read_durations_s_.size(); }
  // Mean power: rise over time of a counter, time-weighted mean of a power gauge. None with fewer than two good
  // readings or for a counter that never changed.
  std::optional<double> mean_power_w() const;

 private:
  Channel channel_;
  EnergyAccumulator accumulator_;
  UpdateTimeEstimator update_clock_;
  std::vector<double> read_durations_s_;
  std::vector<double> update_intervals_s_;  // between changes whose times are known well
  double total_read_duration_s_ = 0;
  std::optional<Reading> last_reading_;
  std::optional<std::int64_t> last_change_ns_;
  std::uint64_t change_count_ = 0;
};

}  // namespace joulemap
