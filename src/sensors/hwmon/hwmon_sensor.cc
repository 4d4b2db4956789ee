// SPDX-License-Identifier: Apache-2.0
#include "sensors/hwmon/hwmon_sensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sensors/counter_file.h"
#include "sensors/file_sensor.h"
#include "sensors/hwmon/hwmon_devices.h"

namespace joulemap::sensors {
namespace {

ProbeResult make_hwmon_status(SensorState state, std::string reason, std::string remedy) {
  ProbeResult probe;
  probe.status = {.name = "hwmon", .state = state, .reason = std::move(reason), .remedy = std::move(remedy)};
  return probe;
}

}  // namespace

ProbeResult probe_hwmon(const ProbeContext& context) {
  Result<std::vector<HwmonFile>> hwmon_files = find_hwmon_files(context.root());
  if (!hwmon_files)
    return make_hwmon_status(SensorState::absent, hwmon_files.error().message, "run as root, or mount /sys");
  if (hwmon_files->empty()) {
    return make_hwmon_status(
        SensorState::absent,
        fmt::format("no device in {} reports energy or power", context.root().path("/sys/class/hwmon")),
        "nothing to do: AMD and Intel GPUs and boards with a power meter appear there automatically");
  }
  std::vector<CounterFile> files;
  std::vector<Channel> channels;
  std::vector<Error> errors;
  for (HwmonFile& candidate : *hwmon_files) {
    Result<CounterFile> file = open_counter_file(candidate.path);
    if (!file) {
      errors.push_back(std::move(file).error());
      continue;
    }
    files.push_back(std::move(*file));
    channels.push_back(std::move(candidate.channel));
  }
  if (channels.empty()) {
    ProbeResult probe = make_hwmon_status(SensorState::absent, errors.front().message,
                                          "the driver does not report a value at the moment; see dmesg");
    if (errors.front().code == ErrorCode::permission) {
      probe.status.state = SensorState::denied;
      probe.status.remedy = "run as root, or let a group of trusted users read the file";
    }
    return probe;
  }
  ProbeResult probe =
      make_hwmon_status(SensorState::measured,
                        fmt::format("{} channels in {}", channels.size(), context.root().path("/sys/class/hwmon")), "");
  for (const Error& error : errors) probe.status.diagnostics.add({"sensor_unreadable", 1, error.message, ""});
  probe.status.channels = channels;
  probe.sensors.push_back(std::make_unique<FileSensor>(std::move(files), std::move(channels)));
  return probe;
}

}  // namespace joulemap::sensors
