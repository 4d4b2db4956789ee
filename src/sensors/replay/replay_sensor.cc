// SPDX-License-Identifier: Apache-2.0
#include "sensors/replay/replay_sensor.h"

#include <algorithm>
#include <limits>

#include "base/clock.h"

namespace joulemap::sensors {

// Value of an energy counter at a time, interpolated between two recorded samples: without that, each edge of a window
// would be off by up to the read period of the recording. Where a sample is a fault (it, or the one after it, falls),
// the last value is repeated.
std::uint64_t ReplaySensor::raw_energy_at(const ReplayChannel& track, std::int64_t into_ns) {
  const TimedReading& previous_reading = track.timed_readings[track.next_reading_index - 1];
  if (track.next_reading_index == track.timed_readings.size()) return previous_reading.raw;
  const TimedReading& next_reading = track.timed_readings[track.next_reading_index];
  const bool has_later_decrease = track.next_reading_index + 1 < track.timed_readings.size() &&
                                  track.timed_readings[track.next_reading_index + 1].code == ReadCode::ok &&
                                  track.timed_readings[track.next_reading_index + 1].raw < next_reading.raw;
  if (previous_reading.code != ReadCode::ok || next_reading.code != ReadCode::ok ||
      next_reading.raw < previous_reading.raw || has_later_decrease)
    return previous_reading.raw;
  const double share = static_cast<double>(into_ns - previous_reading.valid_from_ns) /
                       static_cast<double>(next_reading.valid_from_ns - previous_reading.valid_from_ns);
  return previous_reading.raw +
         static_cast<std::uint64_t>(share * static_cast<double>(next_reading.raw - previous_reading.raw));
}

ReplaySensor::ReplaySensor(std::vector<Channel> channels, const std::vector<Sample>& samples)
    : channels_(std::move(channels)), replay_channels_(channels_.size()) {
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
  for (const Sample& sample : samples) first_ns = std::min(first_ns, sample.reading.time_ns());
  for (const Sample& sample : samples) {
    if (sample.channel >= replay_channels_.size()) continue;
    const std::int64_t from_ns = sample.reading.time_ns() - first_ns;
    replay_channels_[sample.channel].timed_readings.push_back({from_ns, sample.reading.raw, sample.reading.code});
    recording_length_ns_ = std::max(recording_length_ns_, from_ns);
  }
}

void ReplaySensor::read(std::span<Reading> readings, SamplingMode /*mode*/) noexcept {
  const std::int64_t now_ns = monotonic_ns();
  if (!replay_start_ns_) replay_start_ns_ = now_ns;
  const std::int64_t into_ns = now_ns - *replay_start_ns_;
  for (std::size_t i = 0; i < std::min(readings.size(), replay_channels_.size()); ++i) {
    ReplayChannel& track = replay_channels_[i];
    while (track.next_reading_index < track.timed_readings.size() &&
           track.timed_readings[track.next_reading_index].valid_from_ns <= into_ns)
      ++track.next_reading_index;
    readings[i] = {0, now_ns, now_ns, ReadCode::skipped};  // before the channel's first sample
    if (into_ns > recording_length_ns_) {
      readings[i].code = ReadCode::vanished;
    } else if (track.next_reading_index > 0) {
      const bool counts = channels_[i].kind == ChannelKind::counter && channels_[i].quantity == Quantity::energy;
      readings[i].raw = counts ? raw_energy_at(track, into_ns) : track.timed_readings[track.next_reading_index - 1].raw;
      readings[i].code = track.timed_readings[track.next_reading_index - 1].code;
    }
  }
}

}  // namespace joulemap::sensors
