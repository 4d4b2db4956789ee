// SPDX-License-Identifier: Apache-2.0
#include "sampling/doctor.h"

#include <fmt/format.h>

#include <vector>

#include "base/clock.h"
#include "sensors/backends.h"

namespace joulemap::sampling {
namespace {

constexpr std::int64_t kWatch_ns = 50 * kNanosecondsPerMillisecond;

void watch_for_still_counters(std::vector<sensors::Probe>& probes) {
  std::vector<std::vector<Reading>> before;
  for (const sensors::Probe& probe : probes) {
    before.emplace_back(probe.sensor ? probe.sensor->channels().size() : 0);
    if (probe.sensor) probe.sensor->read(before.back());
  }
  sleep_until(monotonic_ns() + kWatch_ns);
  for (std::size_t i = 0; i < probes.size(); ++i) {
    sensors::Probe& probe = probes[i];
    if (!probe.sensor || probe.status.state != SensorState::measured) continue;
    const std::span<const Channel> channels = probe.sensor->channels();
    std::vector<Reading> after(channels.size());
    probe.sensor->read(after);
    for (std::size_t k = 0; k < channels.size(); ++k) {
      const bool still = after[k].code == ReadCode::ok && before[i][k].code == ReadCode::ok && after[k].raw == before[i][k].raw;
      if (!still || channels[k].kind != ChannelKind::counter) continue;
      probe.status.diagnostics.add({"counter_still", 1,
                                    fmt::format("{} ({}) did not move for {} ms", channels[k].name, channels[k].source,
                                                kWatch_ns / kNanosecondsPerMillisecond),
                                    "if it never does, the firmware or a virtual machine holds it: stat will say so and use "
                                    "the estimate"});
    }
  }
}

}  // namespace

Result<DoctorResult> examine(const SystemRoot& root, const std::string& sensors, const std::string& program) {
  Result<std::vector<const sensors::SensorBackend*>> backends = sensors::choose_backends(sensors);
  if (!backends) return std::move(backends).error();
  const sensors::ProbeContext context(root, program);
  std::vector<sensors::Probe> probes;
  for (const sensors::SensorBackend* backend : *backends) probes.push_back(backend->probe(context));
  watch_for_still_counters(probes);

  DoctorResult result{JOULEMAP_VERSION, context.host(), {}};
  for (sensors::Probe& probe : probes) result.sensors.push_back(std::move(probe.status));
  return result;
}

}  // namespace joulemap::sampling
