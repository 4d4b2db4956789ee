// SPDX-License-Identifier: Apache-2.0
#include "sensors/nvml/power_history.h"

#include <utility>

#include "base/clock.h"

namespace joulemap::sensors::nvml {
namespace {

// Well before the driver overwrites its values (after 2.4 s).
constexpr std::int64_t kHistoryReadPeriod_ns = 3 * kNanosecondsPerSecond / 2;
constexpr std::int64_t kDenseReadingTime_ns = std::int64_t{30} * 60 * kNanosecondsPerSecond;
constexpr std::int64_t kLateHistoryReadPeriod_ns = 24 * kNanosecondsPerSecond;
constexpr std::int64_t kHistoryRetryPeriod_ns = 10 * kNanosecondsPerSecond;
// Longer than the driver stores a value.
constexpr std::int64_t kDriverRetention_ns = 5 * kNanosecondsPerSecond / 2;
// Between two reads, wall clock and monotonic clock drift apart by less than this, even while NTP slews the wall clock.
constexpr std::int64_t kMinClockJump_ns = 50 * kNanosecondsPerMillisecond;
// The driver sometimes returns the newest value twice, a microsecond later.
constexpr unsigned long long kMinSampleInterval_us = 1000;

}  // namespace

void PowerHistory::read(const NvmlDevice& device) noexcept {
  samples_.clear();
  const std::int64_t now_ns = monotonic_ns();
  const std::int64_t unix_now_ns = unix_ns();
  if (!has_read_) {
    first_read_ns_ = now_ns;
    add_values({}, now_ns, unix_now_ns);
    next_read_ns_ = now_ns + kHistoryReadPeriod_ns;
    return;
  }
  const NvmlDevice::HistoryReadResult read = device.read_power_history(last_sample_us_, nvml_samples_);
  if (read.status != NvmlReturn::success) {
    next_read_ns_ = now_ns + kHistoryRetryPeriod_ns;
    return;
  }
  add_values(std::span(nvml_samples_).first(read.count), now_ns, unix_now_ns);
  next_read_ns_ =
      now_ns + (now_ns - first_read_ns_ < kDenseReadingTime_ns ? kHistoryReadPeriod_ns : kLateHistoryReadPeriod_ns);
}

void PowerHistory::add_values(std::span<const TimedValue> values, std::int64_t now_ns,
                              std::int64_t unix_now_ns) noexcept {
  const std::int64_t current_unix_offset_ns = unix_now_ns - now_ns;
  const std::int64_t clock_step_ns = current_unix_offset_ns - std::exchange(unix_offset_ns_, current_unix_offset_ns);
  const bool is_first = !std::exchange(has_read_, true);
  const bool was_clock_set = clock_step_ns > kMinClockJump_ns || clock_step_ns < -kMinClockJump_ns;
  if (was_clock_set && !is_first) ignore_samples_until_ns_ = now_ns + kDriverRetention_ns;
  if (is_first || now_ns < ignore_samples_until_ns_) {
    last_sample_us_ = static_cast<unsigned long long>(unix_now_ns / kNanosecondsPerMicrosecond);
    return;
  }
  for (const TimedValue& value : values) {
    const auto sample_unix_ns = static_cast<std::int64_t>(value.timestamp_us) * kNanosecondsPerMicrosecond;
    const std::int64_t taken_ns = sample_unix_ns - current_unix_offset_ns;
    const bool is_known = value.timestamp_us < last_sample_us_ + kMinSampleInterval_us;
    const bool is_before_clock_step =
        taken_ns > now_ns + kMinClockJump_ns;  // the driver still stores values from before the
                                               // clock was set
    if (is_known || is_before_clock_step || samples_.size() == samples_.capacity()) continue;
    last_sample_us_ = value.timestamp_us;
    samples_.push_back({channel_, {value.value.unsigned_int, taken_ns, taken_ns, ReadCode::ok}});
  }
}

}  // namespace joulemap::sensors::nvml
