// SPDX-License-Identifier: Apache-2.0
#include "sampling/open_sensors.h"

#include "sampling/replay_source.h"
#include "sensors/backends.h"

namespace joulemap::sampling {

Result<OpenSensors> open_sensors(const SensorOptions& options) {
  if (!options.replay.empty()) return open_replay(options.replay);
  Result<std::vector<const sensors::SensorBackend*>> backends = sensors::choose_backends(options.sensors);
  if (!backends) return std::move(backends).error();
  OpenSensors opened;
  const sensors::ProbeContext context(options.root, options.program, options.measured);
  for (const sensors::SensorBackend* backend : *backends) {
    if (!options.sensors.empty() && backend->name == "estimate") opened.estimates_asked_for = true;
    sensors::Probe probe = backend->probe(context);
    opened.statuses.push_back(std::move(probe.status));
    for (std::unique_ptr<sensors::Sensor>& sensor : probe.sensors) {
      if (options.period_ns) sensor->request_period(*options.period_ns);
      opened.sensors.push_back(std::move(sensor));
    }
  }
  return opened;
}

}  // namespace joulemap::sampling
