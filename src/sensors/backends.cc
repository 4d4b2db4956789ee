// SPDX-License-Identifier: Apache-2.0
#include "sensors/backends.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "sensors/estimate/estimate_sensor.h"
#include "sensors/hwmon/hwmon_sensor.h"
#include "sensors/nvml/nvml_sensor.h"
#include "sensors/perf_event/perf_event_sensor.h"
#include "sensors/powercap/powercap_sensor.h"

namespace joulemap::sensors {
namespace {

constexpr std::array<SensorBackend, 5> kSensorBackends = {{
    {"perf_event", "RAPL energy counters through perf_event_open", &probe_perf_event},
    {"powercap", "RAPL energy counters in /sys/class/powercap", &probe_powercap},
    {"nvml", "energy counters and power of NVIDIA GPUs (NVML)", &probe_nvml, true},
    {"hwmon", "energy and power of devices in /sys/class/hwmon", &probe_hwmon},
    {"estimate", "model of CPU and memory power, used when no sensor is readable", &probe_estimate},
}};

}  // namespace

std::span<const SensorBackend> sensor_backends() { return kSensorBackends; }

Result<std::vector<const SensorBackend*>> choose_backends(std::string_view sensor_list) {
  std::vector<const SensorBackend*> chosen_backends;
  std::vector<std::string_view> requested_names;
  if (!trim(sensor_list).empty()) requested_names = split(sensor_list, ',');
  for (std::string_view& name : requested_names) {
    name = trim(name);
    const auto known_backend = std::find_if(kSensorBackends.begin(), kSensorBackends.end(),
                                            [&](const SensorBackend& b) { return b.name == name; });
    if (known_backend != kSensorBackends.end()) continue;
    std::string names;
    for (const SensorBackend& backend : kSensorBackends)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", backend.name);
    return Error{ErrorCode::usage, fmt::format("unknown sensor {}", quoted(name)),
                 fmt::format("known sensors: {}", names)};
  }
  for (const SensorBackend& backend : kSensorBackends) {
    if (requested_names.empty() ||
        std::find(requested_names.begin(), requested_names.end(), backend.name) != requested_names.end())
      chosen_backends.push_back(&backend);
  }
  return chosen_backends;
}

}  // namespace joulemap::sensors
