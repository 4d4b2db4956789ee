// SPDX-License-Identifier: Apache-2.0
#include "sampling/open_sensors.h"

#include "base/file_capabilities.h"
#include "sampling/replay_source.h"
#include "sensors/backends.h"

namespace joulemap::sampling {

Result<std::vector<sensors::ProbeResult>> probe_backends(std::span<const sensors::SensorBackend* const> backends,
                                                         const sensors::ProbeContext& context,
                                                         bool uses_file_capabilities) {
  std::vector<sensors::ProbeResult> probes(backends.size());
  const auto probe = [&](bool loads_library) {
    for (std::size_t i = 0; i < backends.size(); ++i) {
      if (backends[i]->loads_library == loads_library) probes[i] = backends[i]->probe_sensors(context);
    }
  };
  if (uses_file_capabilities) {
    if (Status raise_status = raise_permitted_capabilities(); !raise_status) return std::move(raise_status).error();
  }
  probe(false);
  if (uses_file_capabilities) {
    if (Status drop_status = drop_capabilities(); !drop_status) return std::move(drop_status).error();
  }
  probe(true);
  return probes;
}

Result<OpenSensors> open_sensors(const SensorOptions& options) {
  if (!options.replay.empty()) {
    if (options.uses_file_capabilities) {
      if (Status drop_status = drop_capabilities(); !drop_status) return std::move(drop_status).error();
    }
    return open_replay_sensors(options.replay);
  }
  Result<std::vector<const sensors::SensorBackend*>> backends = sensors::choose_backends(options.sensors);
  if (!backends) return std::move(backends).error();
  OpenSensors opened_sensors;
  const sensors::ProbeContext context(options.root, options.program, options.measured_processes);
  for (const sensors::SensorBackend* backend : *backends) {
    if (!options.sensors.empty() && backend->name == "estimate") opened_sensors.are_estimates_requested = true;
  }
  Result<std::vector<sensors::ProbeResult>> probes = probe_backends(*backends, context, options.uses_file_capabilities);
  if (!probes) return std::move(probes).error();
  for (sensors::ProbeResult& probe : *probes) {
    opened_sensors.statuses.push_back(std::move(probe.status));
    for (std::unique_ptr<sensors::Sensor>& sensor : probe.sensors) {
      if (options.period_ns) sensor->request_read_period(*options.period_ns);
      opened_sensors.sensors.push_back(std::move(sensor));
    }
  }
  return opened_sensors;
}

}  // namespace joulemap::sampling
