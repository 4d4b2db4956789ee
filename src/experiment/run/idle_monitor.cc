// SPDX-License-Identifier: Apache-2.0
#include "experiment/run/idle_monitor.h"

#include <poll.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "experiment/run/machine_state.h"

namespace joulemap::experiment {
namespace {

// Length of one idle measurement during a cool-down: several counter updates of RAPL and NVML, but short compared with
// cooling.
constexpr double kCoolDownCheckInterval_s = 0.5;
constexpr double kMinBaselineForMargin_w = 1;  // least baseline power from which the margin is computed

// Counted domains of equal provenance that both states have: a domain in only one would look like a change of power.
std::set<std::string> find_common_domains(const IdleState& a, const IdleState& b) {
  const EnergyTotals totals_a = total_energy(a.domain_powers);
  const EnergyTotals totals_b = total_energy(b.domain_powers);
  std::set<std::string> common_domains;
  for (const Provenance provenance : {Provenance::measured, Provenance::estimated}) {
    const std::optional<EnergyWithProvenance> energy_a = energy_by_provenance(totals_a, provenance);
    const std::optional<EnergyWithProvenance> energy_b = energy_by_provenance(totals_b, provenance);
    if (!energy_a || !energy_b) continue;
    const std::set<std::string> names(energy_b->domains.begin(), energy_b->domains.end());
    for (const std::string& name : energy_a->domains) {
      if (names.contains(name)) common_domains.insert(name);
    }
  }
  return common_domains;
}

}  // namespace

std::optional<double> IdleState::max_temperature_c() const {
  std::optional<double> hottest_c;
  for (const auto& [sensor, degrees] : temperatures_c) hottest_c = std::max(hottest_c.value_or(degrees), degrees);
  return hottest_c;
}

Result<IdleMonitor> IdleMonitor::open(const sampling::SensorOptions& options, BlockedSignals& signals) {
  Result<sampling::Meter> meter = sampling::Meter::open(options);
  if (!meter) return std::move(meter).error();
  return IdleMonitor(std::move(*meter), options.root, signals);
}

void IdleMonitor::add_sample_to_state(const Sample& sample, IdleState& state) const {
  if (sample.reading.code != ReadCode::ok) return;
  const Channel& channel = power_meter_.channels()[sample.channel];
  const double value = static_cast<double>(sample.reading.raw) * channel.scale;
  if (channel.quantity == Quantity::temperature) state.temperatures_c[channel.sensor + "/" + channel.name] = value;
  if (channel.quantity == Quantity::throttle_reasons) {
    state.throttle_reasons = state.throttle_reasons.value_or(0) | sample.reading.raw;
  }
  if (channel.quantity == Quantity::utilization && channel.name.ends_with(kCoTenantUtilizationSuffix)) {
    state.co_tenant_gpu_share = std::max(state.co_tenant_gpu_share.value_or(0), value / 100);
  }
}

void IdleMonitor::wait_until(std::int64_t deadline_ns) {
  pollfd poll_descriptor{signals_.fd(), POLLIN, 0};
  const timespec timeout = to_timespec(std::max<std::int64_t>(deadline_ns - monotonic_ns(), 0));
  if (::ppoll(&poll_descriptor, 1, &timeout, nullptr) <= 0) return;
  while (const std::optional<signalfd_siginfo> signal = signals_.next()) {
    stop_requested_ = stop_requested_ || is_termination_signal(*signal);
  }
}

IdleState IdleMonitor::measure_idle(double seconds) {
  IdleState state;
  power_meter_.set_sample_callback([&](const Sample& sample) { add_sample_to_state(sample, state); });
  const std::optional<CpuTicks> begin = read_cpu_ticks(system_root_);
  power_meter_.prepare();
  power_meter_.begin();
  const std::int64_t end_ns = monotonic_ns() + static_cast<std::int64_t>(seconds * 1e9);
  while (monotonic_ns() < end_ns && !stop_requested_) {
    wait_until(std::min(monotonic_ns() + power_meter_.period_ns(), end_ns));
    power_meter_.sample();
  }
  power_meter_.end();
  power_meter_.set_sample_callback({});
  state.domain_powers = power_meter_.result().rows;
  state.busy_share = cpu_busy_share(begin, read_cpu_ticks(system_root_));
  for (const auto& [sensor, degrees] : cpu_temperatures(system_root_)) state.temperatures_c[sensor] = degrees;
  return state;
}

IdlePowers compare_idle_powers(const IdleState& state, const IdleState& baseline) {
  const std::set<std::string> common_domains = find_common_domains(state, baseline);
  return {total_power(total_energy(state.domain_powers, common_domains)),
          total_power(total_energy(baseline.domain_powers, common_domains))};
}

bool has_cooled_down(const IdleState& state, const IdleState& baseline, const CoolDownSpec& spec) {
  const IdlePowers powers = compare_idle_powers(state, baseline);
  const std::optional<PowerAndReference> comparable_power =
      choose_comparable_power(powers.current_w, powers.baseline_w);
  if (spec.max_power_excess_fraction && comparable_power) {
    const double margin_w =
        *spec.max_power_excess_fraction * std::max(comparable_power->reference_w, kMinBaselineForMargin_w);
    if (comparable_power->power_w > comparable_power->reference_w + margin_w) return false;
  }
  if (!spec.max_temperature_excess_c) return true;
  return std::all_of(baseline.temperatures_c.begin(), baseline.temperatures_c.end(), [&](const auto& sensor) {
    const auto current_temperature = state.temperatures_c.find(sensor.first);
    return current_temperature == state.temperatures_c.end() ||
           current_temperature->second <= sensor.second + *spec.max_temperature_excess_c;
  });
}

CoolDownOutcome IdleMonitor::cool_down(const IdleState& baseline, const CoolDownSpec& spec, IdleState& state) {
  const std::int64_t begin_ns = monotonic_ns();
  CoolDownOutcome outcome;
  do {
    state = measure_idle(kCoolDownCheckInterval_s);
    outcome.reached_baseline = has_cooled_down(state, baseline, spec);
    outcome.waited_s = seconds(monotonic_ns() - begin_ns);
  } while (!outcome.reached_baseline && outcome.waited_s < spec.time_limit_s && !stop_requested_);
  outcome.idle_powers = compare_idle_powers(state, baseline).current_w;
  outcome.temperature_c = state.max_temperature_c();
  outcome.baseline_temperature_c = baseline.max_temperature_c();
  return outcome;
}

}  // namespace joulemap::experiment
