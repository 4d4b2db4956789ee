// SPDX-License-Identifier: Apache-2.0
#include "calibration/published_values.h"

#include <algorithm>

#include "energy/update_time_estimator.h"

namespace joulemap::calibration {
namespace {

// How far the regular time of an update may lie outside the interval that the reads allow.
constexpr std::int64_t kUpdateTimeTolerance_ns = kNanosecondsPerMillisecond;

// Interval in which the value of `reading` appeared, if the previous read `previous_reading` returned another value.
// NVML returns the value at the start of a call.
UpdateInterval make_change_interval(const Reading& previous_reading, const Reading& reading) {
  return {previous_reading.before_ns, std::min(reading.after_ns, reading.before_ns + kNvmlLatchDelay_ns)};
}

std::int64_t estimate_update_time_ns(const UpdateInterval& change, const UpdateTimeEstimator& clock) {
  if (!clock.is_locked()) return change.midpoint_ns();
  const auto period_ns = std::max(std::int64_t{1}, static_cast<std::int64_t>(clock.period_ns()));
  std::int64_t update_ns = clock.last_update_before(change.latest_ns).midpoint_ns();
  // last_update_before() returns an update that is certainly past. Shift it by whole periods to the update nearest to
  // the midpoint of the change.
  const std::int64_t midpoint_offset_ns = change.midpoint_ns() - update_ns;
  update_ns += (midpoint_offset_ns + (midpoint_offset_ns < 0 ? -period_ns : period_ns) / 2) / period_ns * period_ns;
  const bool fits = change.earliest_ns - kUpdateTimeTolerance_ns <= update_ns &&
                    update_ns <= change.latest_ns + kUpdateTimeTolerance_ns;
  return fits ? update_ns : change.midpoint_ns();
}

}  // namespace

PublishedValues make_published_values(const Channel& channel, std::span<const Reading> readings) {
  const bool is_counter = channel.kind == ChannelKind::counter;
  UpdateTimeEstimator clock(is_counter ? UpdateTimeEstimator::EqualValueMeaning::no_update
                                       : UpdateTimeEstimator::EqualValueMeaning::inconclusive,
                            is_counter ? kNvmlLatchDelay_ns : kUnboundedLatchDelay_ns);
  for (const Reading& reading : readings) clock.observe(reading.before_ns, reading.after_ns, reading.raw);
  PublishedValues published_values;
  std::vector<PublishedValue>& timed_values = published_values.values;
  const Reading* previous_reading = nullptr;
  for (const Reading& reading : readings) {
    const bool is_power_history = channel.quantity == Quantity::power_history;
    const std::uint64_t origin = is_counter ? readings.front().raw : 0;
    const double value = static_cast<double>(reading.raw - origin) * channel.scale;
    if (is_power_history) {
      timed_values.push_back({reading.time_ns(), value});
    } else if (previous_reading != nullptr && previous_reading->raw != reading.raw) {
      const std::int64_t time_ns = estimate_update_time_ns(make_change_interval(*previous_reading, reading), clock);
      if (timed_values.empty() || time_ns > timed_values.back().update_time_ns)
        timed_values.push_back({time_ns, value});
    }
    previous_reading = &reading;
  }
  if (channel.quantity != Quantity::power_history && clock.is_locked())
    published_values.time_uncertainty_s = seconds(clock.known_update_half_width_ns());
  return published_values;
}

}  // namespace joulemap::calibration
