// SPDX-License-Identifier: Apache-2.0
#include "session/doctor.h"

#include <fmt/format.h>

#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "sensors/backends.h"

namespace joulemap::session {
namespace {

constexpr std::int64_t kCounterWatchTime_ns = 50 * kNanosecondsPerMillisecond;

// Reads every channel of a probe's sensors, in order.
std::vector<Reading> read_all_channels(const sensors::ProbeResult& probe) {
  std::vector<Reading> all_readings;
  for (const std::unique_ptr<sensors::Sensor>& sensor : probe.sensors) {
    std::vector<Reading> readings(sensor->channels().size());
    sensor->read(readings);
    all_readings.insert(all_readings.end(), readings.begin(), readings.end());
  }
  return all_readings;
}

std::string list_unchanged_counters(const sensors::ProbeResult& probe, std::span<const Reading> earlier_readings,
                                    std::span<const Reading> later_readings) {
  std::string unchanged_counters;
  std::size_t k = 0;
  for (const std::unique_ptr<sensors::Sensor>& sensor : probe.sensors) {
    for (const Channel& channel : sensor->channels()) {
      const bool has_two_readings = later_readings[k].code == ReadCode::ok && earlier_readings[k].code == ReadCode::ok;
      const bool should_update =
          channel.kind == ChannelKind::counter && channel.refresh_s < seconds(kCounterWatchTime_ns);
      if (has_two_readings && should_update && later_readings[k].raw == earlier_readings[k].raw)
        unchanged_counters += fmt::format("{}{}", unchanged_counters.empty() ? "" : ", ", channel.name);
      ++k;
    }
  }
  return unchanged_counters;
}

void mark_unchanged_counters(std::vector<sensors::ProbeResult>& probes) {
  std::vector<std::vector<Reading>> earlier_readings;
  for (const sensors::ProbeResult& probe : probes) earlier_readings.push_back(read_all_channels(probe));
  sleep_until(monotonic_ns() + kCounterWatchTime_ns);
  for (std::size_t i = 0; i < probes.size(); ++i) {
    if (probes[i].status.state != SensorState::measured) continue;
    const std::string unchanged_counters =
        list_unchanged_counters(probes[i], earlier_readings[i], read_all_channels(probes[i]));
    if (unchanged_counters.empty()) continue;
    probes[i].status.diagnostics.add(
        {"counter_still", 1,
         fmt::format("no change within {} ms: {}", kCounterWatchTime_ns / kNanosecondsPerMillisecond,
                     unchanged_counters),
         "if they never change, firmware or a virtual machine freezes them; stat reports that"});
  }
}

}  // namespace

Result<DoctorResult> examine_sensors(const sampling::SensorOptions& options) {
  Result<std::vector<const sensors::SensorBackend*>> backends = sensors::choose_backends(options.sensors);
  if (!backends) return std::move(backends).error();
  const sensors::ProbeContext context(options.root, options.program);
  Result<std::vector<sensors::ProbeResult>> probes =
      sampling::probe_backends(*backends, context, options.uses_file_capabilities);
  if (!probes) return std::move(probes).error();
  mark_unchanged_counters(*probes);

  DoctorResult result{JOULEMAP_VERSION, context.host(), {}};
  for (sensors::ProbeResult& probe : *probes) result.sensors.push_back(std::move(probe.status));
  return result;
}

}  // namespace joulemap::session
