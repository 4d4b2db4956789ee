// SPDX-License-Identifier: Apache-2.0
#include "sampling/calibration.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <cmath>

#include "base/clock.h"
#include "model/channel_behaviour.h"

namespace joulemap::sampling {
namespace {

constexpr std::int64_t kDrainPeriod_ns = 5 * kNanosecondsPerMillisecond;
// Above this a GPU does not idle.
constexpr double kIdleUtilization = 5;

// A channel without a driver of its own hangs on the kernel.
std::string driver_of(const Channel& channel) {
  if (!channel.driver.empty()) return channel.driver;
  utsname system{};
  return ::uname(&system) == 0 ? fmt::format("Linux {}", system.release) : std::string();
}

// What one read of a sensor cost in CPU time, shared among its channels by how long each took.
double cpu_per_wall(const Sampler& sampler, std::size_t sensor, const std::vector<ChannelBehaviour>& seen,
                    const std::vector<SamplerCost>& costs) {
  const auto [first, count] = sampler.channels_of(sensor);
  double wall_s = 0;
  for (std::size_t i = first; i < first + count; ++i) wall_s += seen[i].total_read_s();
  return wall_s > 0 ? std::min(seconds(costs[sensor].cpu_ns) / wall_s, 1.0) : 1.0;
}

// The phase of every regular channel is told against the first regular one of its device.
void find_phases(const std::vector<Channel>& channels, const std::vector<ChannelBehaviour>& seen, std::int64_t at_ns,
                 std::vector<ChannelCalibration>& findings) {
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const auto step = seen[i].step_before(at_ns);
    if (!step || channels[i].device.empty()) continue;
    for (std::size_t k = 0; k < i; ++k) {
      const auto reference = seen[k].step_before(at_ns);
      if (!reference || channels[k].device != channels[i].device) continue;
      const double period_s = seen[k].refresh()->period_s;
      double phase_s = seconds(step->middle_ns() - reference->middle_ns());
      phase_s -= period_s * std::floor(phase_s / period_s);
      findings[i].phase_s = phase_s;
      findings[i].phase_of = channels[k].name;
      break;
    }
  }
}

void note_load(const std::vector<Channel>& channels, const std::vector<Reading>& last, Diagnostics& diagnostics) {
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const double value = static_cast<double>(last[i].raw) * channels[i].scale;
    if (channels[i].quantity != Quantity::utilization || last[i].code != ReadCode::ok || value < kIdleUtilization)
      continue;
    diagnostics.add({"not_idle", 1,
                     fmt::format("{} was busy to {:.0f} %: its idle power is too high", channels[i].domain, value),
                     "calibrate while nothing else runs"});
  }
}

}  // namespace

CalibrateResult calibrate(Sampler& sampler, std::int64_t duration_ns) {
  CalibrateResult result;
  result.channels.assign(sampler.channels().begin(), sampler.channels().end());
  std::vector<ChannelBehaviour> seen(result.channels.begin(), result.channels.end());
  std::vector<Reading> last(seen.size());
  const std::int64_t begin_ns = monotonic_ns();
  sampler.pay(sensors::Attention::close);
  sampler.start();
  while (monotonic_ns() < begin_ns + duration_ns) {
    sleep_until(monotonic_ns() + kDrainPeriod_ns);
    sampler.drain([&](const Sample& sample) {
      seen[sample.channel].observe(sample.reading);
      last[sample.channel] = sample.reading;
    });
  }
  sampler.stop();
  const std::int64_t end_ns = monotonic_ns();
  result.watched_s = seconds(end_ns - begin_ns);
  result.samplers = sampler.costs();
  for (std::size_t sensor = 0; sensor < sampler.sensor_count(); ++sensor) {
    const double cpu_share = cpu_per_wall(sampler, sensor, seen, result.samplers);
    const auto [first, count] = sampler.channels_of(sensor);
    for (std::size_t i = first; i < first + count; ++i) {
      ChannelCalibration finding;
      finding.channel = result.channels[i].name;
      finding.device = result.channels[i].device;
      finding.driver = driver_of(result.channels[i]);
      if (const auto refresh = seen[i].refresh()) {
        finding.refresh_s = refresh->period_s;
        finding.refresh_spread_s = refresh->spread_s;
      }
      finding.read_wall_s = seen[i].median_read_s();
      if (finding.read_wall_s) finding.read_cpu_s = *finding.read_wall_s * cpu_share;
      if (result.channels[i].provenance == Provenance::measured) finding.idle_w = seen[i].mean_w();
      finding.made_unix_ns = unix_ns();
      result.findings.push_back(std::move(finding));
    }
  }
  find_phases(result.channels, seen, end_ns, result.findings);
  note_load(result.channels, last, result.diagnostics);
  return result;
}

}  // namespace joulemap::sampling
