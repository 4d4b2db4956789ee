// SPDX-License-Identifier: Apache-2.0
//
// PowerHistory: the power of an NVIDIA GPU as its driver keeps it, every 20 ms on an H200 for the last 2.4 s, with the
// times at which it was taken. One call for all of it takes 0.3 ms, so it costs next to nothing: this is what tells apart
// kernels that alternate faster than the energy counter steps. Owned by an NvmlSensor, used by its thread;
// CLOCK_MONOTONIC.
//
// A long recording needs no more than some of it: after the first half hour it is read now and then, 2.4 s at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/sample.h"
#include "sensors/nvml/nvml_device.h"

namespace joulemap::sensors::nvml {

class PowerHistory {
 public:
  explicit PowerHistory(std::uint32_t channel) : channel_(channel) { samples_.reserve(kMostValues); }

  bool is_due(std::int64_t now_ns) const { return now_ns >= due_ns_; }
  std::int64_t due_ns() const { return due_ns_; }
  // Reads what is new since the last time. What lies before the first read is nobody's.
  void read(const NvmlDevice& device) noexcept;
  // The same from what the driver returned: values with their times by the wall clock, as it stands at `unix_now_ns`. Where
  // that clock was set, values from before and after cannot be distinguished: all are dropped until the driver has
  // overwritten those from before.
  void take(std::span<const TimedValue> values, std::int64_t now_ns, std::int64_t unix_now_ns) noexcept;
  void clear() { samples_.clear(); }
  std::span<const Sample> samples() const { return samples_; }

 private:
  static constexpr std::size_t kMostValues = 1024;

  std::uint32_t channel_;
  std::array<TimedValue, kMostValues> values_{};
  std::vector<Sample> samples_;
  unsigned long long last_us_ = 0;  // of the newest value that was told
  std::int64_t unix_ahead_ns_ = 0;  // of the monotonic clock, when it was read last
  std::int64_t unsure_until_ns_ = 0;
  std::int64_t first_read_ns_ = 0;
  std::int64_t due_ns_ = 0;
  bool has_read_ = false;
};

}  // namespace joulemap::sensors::nvml
