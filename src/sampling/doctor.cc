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
    std::string still;
    for (std::size_t k = 0; k < channels.size(); ++k) {
      const bool both = after[k].code == ReadCode::ok && before[i][k].code == ReadCode::ok;
      if (!both || after[k].raw != before[i][k].raw || channels[k].kind != ChannelKind::counter) continue;
      still += fmt::format("{}{}", still.empty() ? "" : ", ", channels[k].name);
    }
    if (still.empty()) continue;
    probe.status.diagnostics.add(
        {"counter_still", 1, fmt::format("did not move for {} ms: {}", kWatch_ns / kNanosecondsPerMillisecond, still),
         "if they never do, firmware or a virtual machine holds them; stat will then say so"});
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
