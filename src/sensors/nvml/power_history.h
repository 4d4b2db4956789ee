// SPDX-License-Identifier: Apache-2.0
//
// PowerHistory: the power samples of an NVIDIA GPU that its driver stores, every 20 ms on an H200 for the last 2.4 s,
// with timestamps. One call returns all of them in 0.3 ms, so the cost is negligible. They separate kernels that
// alternate faster than the energy counter updates. Owned by an NvmlSensor, used by its thread; CLOCK_MONOTONIC.
//
// A long recording needs only part of the history: after the first half hour, 2.4 s of it are read every 24 s.
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
  explicit PowerHistory(std::uint32_t channel) : channel_(channel) { samples_.reserve(kMaxValues); }

  bool is_read_due(std::int64_t now_ns) const { return now_ns >= next_read_ns_; }
  std::int64_t next_read_ns() const { return next_read_ns_; }
  // Reads the values since the last read. Values from before the first read are dropped.
  void read(const NvmlDevice& device) noexcept;
  // The same with values that the driver returned. Their timestamps are of the wall clock, which is `unix_now_ns` at
  // `now_ns` of the monotonic clock. If the wall clock was set, values from before and after cannot be distinguished:
  // all are dropped until the driver has overwritten the older ones.
  void add_values(std::span<const TimedValue> values, std::int64_t now_ns, std::int64_t unix_now_ns) noexcept;
  void clear() { samples_.clear(); }
  std::span<const Sample> samples() const { return samples_; }

 private:
  static constexpr std::size_t kMaxValues = 1024;

  std::uint32_t channel_;
  std::array<TimedValue, kMaxValues> nvml_samples_{};
  std::vector<Sample> samples_;
  unsigned long long last_sample_us_ = 0;  // timestamp of the newest returned value
  std::int64_t unix_offset_ns_ = 0;        // wall clock minus monotonic clock at the last read
  std::int64_t ignore_samples_until_ns_ = 0;
  std::int64_t first_read_ns_ = 0;
  std::int64_t next_read_ns_ = 0;
  bool has_read_ = false;
};

}  // namespace joulemap::sensors::nvml
