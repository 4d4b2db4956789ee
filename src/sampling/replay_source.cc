// SPDX-License-Identifier: Apache-2.0
#include "sampling/replay_source.h"

#include <fmt/format.h>

#include <vector>

#include "recording/recording_parts.h"
#include "recording/recording_reader.h"
#include "sensors/replay/replay_sensor.h"

namespace joulemap::sampling {
namespace {

constexpr std::size_t kMaxReplaySamples = 8'000'000;

class ReplayReadingCollector final : public recording::RecordingVisitor {
 public:
  void on_channels(std::uint32_t /*source*/, std::uint32_t first_channel, std::span<const Channel> channels) override {
    if (channels_.size() < first_channel + channels.size()) channels_.resize(first_channel + channels.size());
    for (std::size_t i = 0; i < channels.size(); ++i) channels_[first_channel + i] = channels[i];
  }
  void on_samples(std::uint32_t /*source*/, std::span<const Sample> samples) override {
    if (samples_.size() + samples.size() > kMaxReplaySamples) {
      has_too_many_samples_ = true;
      return;
    }
    samples_.insert(samples_.end(), samples.begin(), samples.end());
  }
  bool has_too_many_samples() const { return has_too_many_samples_; }
  std::vector<Channel>& channels() { return channels_; }
  const std::vector<Sample>& samples() const { return samples_; }

 private:
  std::vector<Channel> channels_;
  std::vector<Sample> samples_;
  bool has_too_many_samples_ = false;
};

}  // namespace

Result<OpenSensors> open_replay_sensors(const std::string& path) {
  Result<std::vector<recording::RecordingFile>> files = recording::open_recording(std::span(&path, 1));
  if (!files) return std::move(files).error();
  ReplayReadingCollector collector;
  Result<recording::RecordingSummary> recording_summary = recording::read_recording(*files, collector);
  if (!recording_summary) return std::move(recording_summary).error();
  if (collector.has_too_many_samples()) {
    return Error{ErrorCode::unsupported, fmt::format("{} is too long to replay", path), "replay a shorter recording"};
  }
  if (collector.samples().empty()) {
    return Error{ErrorCode::unsupported, fmt::format("{} contains no samples", path),
                 "record on a machine with a sensor"};
  }
  OpenSensors opened_sensors;
  SensorStatus status;
  status.name = "replay";
  status.state = SensorState::measured;
  status.reason = fmt::format("{} samples of {}", collector.samples().size(), path);
  status.channels = collector.channels();
  status.diagnostics = recording_summary->diagnostics;
  opened_sensors.statuses.push_back(std::move(status));
  opened_sensors.sensors.push_back(
      std::make_unique<sensors::ReplaySensor>(std::move(collector.channels()), collector.samples()));
  return opened_sensors;
}

}  // namespace joulemap::sampling
