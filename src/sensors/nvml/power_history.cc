// SPDX-License-Identifier: Apache-2.0
#include "sensors/nvml/power_history.h"

#include <utility>

#include "base/clock.h"

namespace joulemap::sensors::nvml {
namespace {

// Well before the driver overwrites its values (after 2.4 s).
constexpr std::int64_t kPeriod_ns = 3 * kNanosecondsPerSecond / 2;
constexpr std::int64_t kDenseReading_ns = std::int64_t{30} * 60 * kNanosecondsPerSecond;
constexpr std::int64_t kLatePeriod_ns = 24 * kNanosecondsPerSecond;
constexpr std::int64_t kRetryPeriod_ns = 10 * kNanosecondsPerSecond;
// Longer than the driver stores a value.
constexpr std::int64_t kDriverRetention_ns = 5 * kNanosecondsPerSecond / 2;
// Between two reads, wall clock and monotonic clock drift apart by less than this, even while NTP slews the wall clock.
constexpr std::int64_t kClockJump_ns = 50 * kNanosecondsPerMillisecond;
// The driver sometimes returns the newest value twice, a microsecond later.
constexpr unsigned long long kMinSampleDistance_us = 1000;

}  // namespace

void PowerHistory::read(const NvmlDevice& device) noexcept {
  samples_.clear();
  const std::int64_t now_ns = monotonic_ns();
  const std::int64_t unix_now_ns = unix_ns();
  if (!has_read_) {
    first_read_ns_ = now_ns;
    add_values({}, now_ns, unix_now_ns);
    due_ns_ = now_ns + kPeriod_ns;
    return;
  }
  const NvmlDevice::HistoryReadResult read = device.read_power_history(last_us_, values_);
  if (read.status != Return::success) {
    due_ns_ = now_ns + kRetryPeriod_ns;
    return;
  }
  add_values(std::span(values_).first(read.count), now_ns, unix_now_ns);
  due_ns_ = now_ns + (now_ns - first_read_ns_ < kDenseReading_ns ? kPeriod_ns : kLatePeriod_ns);
}

void PowerHistory::add_values(std::span<const TimedValue> values, std::int64_t now_ns,
                              std::int64_t unix_now_ns) noexcept {
  const std::int64_t unix_ahead_ns = unix_now_ns - now_ns;
  const std::int64_t set_by_ns = unix_ahead_ns - std::exchange(unix_offset_ns_, unix_ahead_ns);
  const bool is_first = !std::exchange(has_read_, true);
  const bool was_set = set_by_ns > kClockJump_ns || set_by_ns < -kClockJump_ns;
  if (was_set && !is_first) discard_until_ns_ = now_ns + kDriverRetention_ns;
  if (is_first || now_ns < discard_until_ns_) {
    last_us_ = static_cast<unsigned long long>(unix_now_ns / kNanosecondsPerMicrosecond);
    return;
  }
  for (const TimedValue& value : values) {
    const auto unix_taken_ns = static_cast<std::int64_t>(value.timestamp_us) * kNanosecondsPerMicrosecond;
    const std::int64_t taken_ns = unix_taken_ns - unix_ahead_ns;
    const bool is_known = value.timestamp_us < last_us_ + kMinSampleDistance_us;
    const bool is_before_set = taken_ns > now_ns + kClockJump_ns;  // the driver still stores values from before the
                                                                   // clock was set
    if (is_known || is_before_set || samples_.size() == samples_.capacity()) continue;
    last_us_ = value.timestamp_us;
    samples_.push_back({channel_, {value.value.unsigned_int, taken_ns, taken_ns, ReadCode::ok}});
  }
}

}  // namespace joulemap::sensors::nvml
