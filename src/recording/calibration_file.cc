// SPDX-License-Identifier: Apache-2.0
#include "recording/calibration_file.h"

#include <algorithm>
#include <chrono>

#include "base/file_lock.h"
#include "base/small_file.h"
#include "recording/atomic_recording_file.h"
#include "recording/recording_reader.h"
#include "recording/recording_writer.h"

namespace joulemap::recording {
namespace {

constexpr std::chrono::milliseconds kCalibrationLockTimeout{3000};

class CalibrationVisitor final : public RecordingVisitor {
 public:
  void on_calibration(std::uint32_t /*source*/, const ChannelCalibration& calibration) override {
    calibrations_.push_back(calibration);
  }
  std::vector<ChannelCalibration> take_calibrations() { return std::move(calibrations_); }

 private:
  std::vector<ChannelCalibration> calibrations_;
};

bool is_same_channel_and_driver(const ChannelCalibration& a, const ChannelCalibration& b) {
  return a.channel == b.channel && a.device == b.device && a.driver == b.driver;
}

}  // namespace

Result<std::vector<ChannelCalibration>> load_calibrations(const std::string& path) {
  if (!file_exists(path)) return std::vector<ChannelCalibration>{};
  CalibrationVisitor collector;
  Result<RecordingSummary> summary = read_recording(path, collector);
  if (!summary) return std::move(summary).error();
  return collector.take_calibrations();
}

Status merge_into_calibration_file(const std::string& path, std::span<const ChannelCalibration> findings) {
  if (Status folder_status = create_parent_folder(path); !folder_status) return folder_status;
  // Locks a separate file, because the file itself is replaced. The findings of concurrent calibrations are all kept.
  const Result<FileLock> file_lock = FileLock::acquire(path + ".lock", LockScope::shared, kCalibrationLockTimeout);
  if (!file_lock) return file_lock.error();
  // Replaces a damaged file, because calibrating again takes seconds. Any other error, such as a newer version, makes
  // the save fail and leaves the file unchanged.
  Result<std::vector<ChannelCalibration>> stored_calibrations = load_calibrations(path);
  if (!stored_calibrations && stored_calibrations.error().code != ErrorCode::malformed)
    return std::move(stored_calibrations).error();
  std::vector<ChannelCalibration> merged_calibrations =
      stored_calibrations ? std::move(*stored_calibrations) : std::vector<ChannelCalibration>{};
  for (const ChannelCalibration& finding : findings) {
    std::erase_if(merged_calibrations, [&](const ChannelCalibration& stored_calibration) {
      return is_same_channel_and_driver(stored_calibration, finding);
    });
    merged_calibrations.push_back(finding);
  }
  return replace_recording_atomically(path, "calibration", [&](RecordingWriter& writer) {
    for (const ChannelCalibration& entry : merged_calibrations) writer.add(entry);
  });
}

std::vector<ChannelCalibration> find_calibrations_for_channels(std::span<const ChannelCalibration> calibrations,
                                                               std::span<const Channel> channels) {
  std::vector<ChannelCalibration> matching_calibrations;
  for (const ChannelCalibration& entry : calibrations) {
    const bool is_matching = std::any_of(channels.begin(), channels.end(), [&](const Channel& channel) {
      return channel.name == entry.channel && channel.device == entry.device &&
             (channel.driver.empty() || channel.driver == entry.driver);
    });
    if (is_matching) matching_calibrations.push_back(entry);
  }
  return matching_calibrations;
}

}  // namespace joulemap::recording
