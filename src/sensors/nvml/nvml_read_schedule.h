// SPDX-License-Identifier: Apache-2.0
//
// Schedules the reads of an NVIDIA GPU. Pure: takes the results of reads and returns the time of the next one, in ns of
// CLOCK_MONOTONIC, without reading the clock or the device.
//
// Reading the energy counter of an H200 spins for 2 to 30 ms; reading its powers takes microseconds. Both update every
// 100 ms. So the powers are polled, and the counter is read rarely, but at the right times: a value read just after an
// update is the energy at that update, whose time the UpdateTimeEstimator estimates better than any single read.
//
//   relaxed       the counter between two updates, where a read is cheapest, as often as kCounterReadCpuFraction of a
//                 core allows; and now and then within the uncertainty of an update's time, to reduce it
//   every_update  the same for every update, regardless of kCounterReadCpuFraction
//   near_edge     the counter just before and just after every update; densely until the update times are known
#pragma once

#include <cstdint>
#include <optional>

#include "energy/update_time_estimator.h"
#include "sensors/sensor.h"

namespace joulemap::sensors::nvml {

// CPU time that reads of the counter may cost, as a fraction of one core.
inline constexpr double kCounterReadCpuFraction = 0.003;

class CounterReadSchedule {
 public:
  void add_read(std::int64_t before_ns, std::int64_t after_ns, std::int64_t cpu_ns, std::uint64_t raw_value,
                SamplingMode mode) noexcept;
  void add_failed_read(std::int64_t after_ns) noexcept;

  // Time of the next read. `requested_ns`: a read period that replaces the one from kCounterReadCpuFraction. Once
  // update times are known, relaxed reads are not closer than the updates.
  std::int64_t next_read_ns(SamplingMode mode, std::optional<std::int64_t> requested_ns) const noexcept;

  // Passes the update period of another value of the same device to the counter's clock
  // (UpdateTimeEstimator::suggest_period).
  void suggest_period(const UpdateTimeEstimator& other_estimator) noexcept;

  const UpdateTimeEstimator& update_clock() const { return update_clock_; }
  std::int64_t mean_cpu_ns() const { return mean_cpu_ns_; }

 private:
  std::int64_t next_near_edge_read_ns() const noexcept;
  std::int64_t next_relaxed_read_ns(std::int64_t next_affordable_read_ns) const noexcept;
  std::int64_t cheapest_read_ns(const UpdateInterval& step) const;  // when a read after that update is cheapest
  std::int64_t uncertainty_midpoint_ns(const UpdateInterval& step) const;

  UpdateTimeEstimator update_clock_{UpdateTimeEstimator::EqualValueMeaning::no_update, kNvmlLatchDelay_ns};
  std::int64_t last_read_begin_ns_ = 0;
  std::int64_t last_read_end_ns_ = 0;
  std::int64_t mean_cpu_ns_ = 0;
  std::int64_t mean_read_ns_ = 0;       // moving average of the read duration; each read counts with at most twice this
  std::int64_t max_usual_read_ns_ = 0;  // upper bound of the duration of most reads
  unsigned read_count_ = 0;
  std::int64_t next_affordable_read_ns_ = 0;
  bool has_read_ = false;
  bool has_last_read_failed_ = false;
  int update_search_read_count_ =
      0;  // reads in the current search for an update, while the period is known, its phase not
};

class PowerReadSchedule {
 public:
  void add_read(std::int64_t before_ns, std::int64_t after_ns, std::uint64_t raw_value) noexcept;
  void add_failed_read(std::int64_t after_ns) noexcept;
  std::int64_t next_read_ns(SamplingMode mode, std::optional<std::int64_t> requested_ns) const noexcept;
  const UpdateTimeEstimator& update_clock() const { return update_clock_; }

 private:
  UpdateTimeEstimator update_clock_{UpdateTimeEstimator::EqualValueMeaning::inconclusive};
  std::int64_t first_read_ns_ = 0;
  std::int64_t last_read_begin_ns_ = 0;
  bool has_read_ = false;
  bool has_last_read_failed_ = false;
};

}  // namespace joulemap::sensors::nvml
