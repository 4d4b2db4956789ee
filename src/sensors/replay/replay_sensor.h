// SPDX-License-Identifier: Apache-2.0
//
// ReplaySensor: replays the readings of another machine's sensors in real time; the first read is the beginning of the
// recording. Energy counters are interpolated between recorded samples; other channels keep the last value. It
// reproduces faults of other machines without their hardware. After the last recorded sample, readings have the code
// `vanished`; before a channel's first sample, `skipped`.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/sample.h"
#include "sensors/sensor.h"

namespace joulemap::sensors {

class ReplaySensor final : public Sensor {
 public:
  // `samples`: those of all channels together; those of one channel are in order of time. Sample::channel is an index
  // into `channels`.
  ReplaySensor(std::vector<Channel> channels, const std::vector<Sample>& samples);

  std::span<const Channel> channels() const override { return channels_; }
  void read(std::span<Reading> readings, SamplingMode mode) noexcept override;

 private:
  // The value and code of a channel from `valid_from_ns` on, in ns since the begin of the recording.
  struct TimedReading {
    std::int64_t valid_from_ns = 0;
    std::uint64_t raw = 0;
    ReadCode code = ReadCode::ok;
  };
  struct ReplayChannel {
    std::vector<TimedReading> timed_readings;
    std::size_t next_reading_index = 0;
  };

  static std::uint64_t raw_energy_at(const ReplayChannel& track, std::int64_t into_ns);

  std::vector<Channel> channels_;
  std::vector<ReplayChannel> replay_channels_;
  std::int64_t recording_length_ns_ = 0;
  std::optional<std::int64_t> replay_start_ns_;
};

}  // namespace joulemap::sensors
