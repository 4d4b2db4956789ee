// SPDX-License-Identifier: Apache-2.0
//
// When an NVIDIA GPU is worth reading. Pure: fed with what reads gave, asked for the next moment; no clock, no device.
// Nanoseconds of CLOCK_MONOTONIC.
//
// Reading the energy counter of an H200 spins for 2 to 30 ms; reading its powers takes microseconds. Both are renewed every
// 100 ms. So the powers are polled, and the counter is read seldom, but at the right moments: a value read just after a step
// says what the energy was at that step, whose moment the StepClock knows better than any read could tell.
//
//   relaxed   the counter between two steps, where a read is cheapest, as often as kCounterShare of a core allows; and
//             now and then inside what is not known of a step, so that it is known better
//   steps     the same at every step, whatever the share
//   close     the counter just before and just after every step; densely until the steps are known
#pragma once

#include <cstdint>
#include <optional>

#include "energy/step_clock.h"
#include "sensors/sensor.h"

namespace joulemap::sensors::nvml {

// The CPU time that reads of the counter may cost, as a share of one core.
inline constexpr double kCounterShare = 0.003;

class CounterPace {
 public:
  void note_read(std::int64_t before_ns, std::int64_t after_ns, std::int64_t cpu_ns, std::uint64_t raw,
                 Attention attention) noexcept;
  void note_failure(std::int64_t after_ns) noexcept;

  // When to read next. `requested_ns`: what the user wants instead of what the share allows; relaxed reads are never closer
  // than the steps, once those are known.
  std::int64_t next_ns(Attention attention, std::optional<std::int64_t> requested_ns) const noexcept;

  // The period of another value of the same device, while our own is not known.
  void suggest_period(const StepClock& other) noexcept;

  const StepClock& clock() const { return clock_; }
  std::int64_t mean_cpu_ns() const { return mean_cpu_ns_; }

 private:
  std::int64_t next_close_ns() const noexcept;
  std::int64_t next_relaxed_ns(std::int64_t affordable_ns) const noexcept;
  std::int64_t well_known_ns() const;
  std::int64_t quiet_ns(const StepInterval& step) const;  // when a read after that step is cheapest
  std::int64_t inside_ns(const StepInterval& step) const;

  StepClock clock_{StepClock::EqualValues::mean_no_step, kNvmlLatch_ns};
  std::int64_t last_before_ns_ = 0;
  std::int64_t last_after_ns_ = 0;
  std::int64_t mean_cpu_ns_ = 0;
  std::int64_t mean_wall_ns_ = 0;   // of usual reads: one that takes ten times as long hardly moves it
  std::int64_t long_wall_ns_ = 0;   // most reads take less
  std::int64_t short_wall_ns_ = 0;  // hardly one does
  unsigned reads_ = 0;
  std::int64_t affordable_ns_ = 0;
  bool has_read_ = false;
  bool has_failed_ = false;
  int seeking_reads_ = 0;  // of a series that looks for a step whose period is known
};

class PowerPace {
 public:
  void note_read(std::int64_t before_ns, std::int64_t after_ns, std::uint64_t raw) noexcept;
  void note_failure(std::int64_t after_ns) noexcept;
  std::int64_t next_ns(Attention attention, std::optional<std::int64_t> requested_ns) const noexcept;
  const StepClock& clock() const { return clock_; }

 private:
  StepClock clock_{StepClock::EqualValues::prove_nothing};
  std::int64_t first_ns_ = 0;
  std::int64_t last_before_ns_ = 0;
  bool has_read_ = false;
  bool has_failed_ = false;
};

}  // namespace joulemap::sensors::nvml
