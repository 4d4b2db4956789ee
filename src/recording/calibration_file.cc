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
  void on_calibration(std::uint32_t /*source*/, const ChannelCalibration& known) override {
    calibrations_.push_back(known);
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
  Result<RecordingSummary> read = read_recording(path, collector);
  if (!read) return std::move(read).error();
  return collector.take_calibrations();
}

Status merge_into_calibration_file(const std::string& path, std::span<const ChannelCalibration> findings) {
  if (Status made = create_parent_folder(path); !made) return made;
  // Locks a separate file, because the file itself is replaced. The findings of concurrent calibrations are all kept.
  const Result<FileLock> held = FileLock::acquire(path + ".lock", LockScope::shared, kCalibrationLockTimeout);
  if (!held) return held.error();
  // Replaces a damaged file, because calibrating again takes seconds. Any other error, such as a newer version, makes
  // the save fail and leaves the file unchanged.
  Result<std::vector<ChannelCalibration>> known = load_calibrations(path);
  if (!known && known.error().code != ErrorCode::malformed) return std::move(known).error();
  std::vector<ChannelCalibration> all = known ? std::move(*known) : std::vector<ChannelCalibration>{};
  for (const ChannelCalibration& finding : findings) {
    std::erase_if(all, [&](const ChannelCalibration& old) { return is_same_channel_and_driver(old, finding); });
    all.push_back(finding);
  }
  return replace_recording_atomically(path, "calibration", [&](RecordingWriter& writer) {
    for (const ChannelCalibration& entry : all) writer.add(entry);
  });
}

std::vector<ChannelCalibration> find_calibrations_for_channels(std::span<const ChannelCalibration> known,
                                                               std::span<const Channel> channels) {
  std::vector<ChannelCalibration> chosen;
  for (const ChannelCalibration& entry : known) {
    const bool wanted = std::any_of(channels.begin(), channels.end(), [&](const Channel& channel) {
      return channel.name == entry.channel && channel.device == entry.device &&
             (channel.driver.empty() || channel.driver == entry.driver);
    });
    if (wanted) chosen.push_back(entry);
  }
  return chosen;
}

}  // namespace joulemap::recording
