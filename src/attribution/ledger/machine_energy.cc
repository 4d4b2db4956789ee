// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/machine_energy.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "attribution/gpu/usual_kernel_powers.h"
#include "base/clock.h"
#include "statistics/random.h"

namespace joulemap::attribution {
namespace {

// Lower bound of the power of a kernel class: a fit may return zero, which would get no energy.
constexpr double kMinBusyPower_w = 1;
// A GPU that runs kernels uses more than an idle one, even where the counter was read too rarely to show it.
constexpr double kMinBusyToIdlePowerRatio = 1.2;
// Mean power of kernels over active-idle power before anything is measured, and its standard deviation: most networks
// on an H200 (128 W idle) use 250 to 600 W while kernels run.
constexpr double kDefaultBusyToIdlePowerRatio = 3;
constexpr double kBusyToIdlePowerRatioSd = 1;

// Relative standard deviation of the power of other processes. What they run, how it changes and when within two
// seconds it ran is unknown: their power is no better than a time-proportional split, however small the fit's residual.
constexpr double kCoTenantPowerRelativeSd = 0.3;
constexpr std::uint64_t kCoTenantSeed = 20'261'115;

void widen_co_tenant_power_uncertainty(PowerFit& fit, std::uint16_t column) {
  KernelClassPower& power = fit.classes[column];
  power.is_regressed = power.is_probed = power.is_from_library = false;
  statistics::Random random(kCoTenantSeed);
  for (double& watts : fit.power_replicates[column])
    watts *= std::max(1 + kCoTenantPowerRelativeSd * random.normal(), 0.0);
  std::tie(power.low_w, power.high_w) = central_interval(fit.power_replicates[column], 0.9);
}

struct BusyAndIdlePower {
  double busy_w = 0;  // while kernels run
  IdlePower idle;
};

// Where the kernel classes cannot be identified, their mean power and idle power still can: the measured energy is the
// sum of both powers times their times. Returns the two powers with the largest posterior density: the less time one of
// them has, the less the energy shows about it, and the closer it stays to its prior. Uses only the time from the first
// kernel to the last, because before it the GPU may be in a sleep state.
BusyAndIdlePower estimate_busy_and_idle_power(const DeviceWork& work, const PowerEvidence& evidence) {
  TimeSpan kernels{INT64_MAX, INT64_MIN};
  for (const DeviceWork::Slice& slice : work.slices)
    kernels = {std::min(kernels.begin_ns, slice.begin_ns), std::max(kernels.end_ns, slice.end_ns)};
  std::vector<EnergyPoint> updates;
  for (const EnergyPoint& update : evidence.counter_updates) {
    if (update.time_ns >= kernels.begin_ns && update.time_ns <= kernels.end_ns) updates.push_back(update);
  }
  double busy_s = 0;
  for (const DeviceWork::Slice& slice : work.slices) {
    if (updates.empty() || slice.end_ns <= slice.begin_ns) continue;
    const std::int64_t from_ns = std::max(slice.begin_ns, updates.front().time_ns);
    const std::int64_t to_ns = std::min(slice.end_ns, updates.back().time_ns);
    if (to_ns > from_ns) busy_s += slice.busy_s * seconds(to_ns - from_ns) / seconds(slice.end_ns - slice.begin_ns);
  }
  const double length_s = updates.size() < 2 ? 0 : seconds(updates.back().time_ns - updates.front().time_ns);
  const double idle_s = std::max(length_s - busy_s, 0.0);
  const double joules = length_s > 0 ? updates.back().joules - updates.front().joules : 0;
  if (!evidence.calibrated_sensor.active_idle_power) {
    const double busy_w = joules > 0 ? joules / (busy_s + kDefaultIdleFraction * idle_s) : 1;
    return {busy_w, {kDefaultIdleFraction * busy_w, kDefaultIdleFraction / 2 * busy_w}};
  }
  IdlePower idle = *evidence.calibrated_sensor.active_idle_power;
  double busy_w = kDefaultBusyToIdlePowerRatio * idle.watts;
  const double busy_sd_w = kBusyToIdlePowerRatioSd * idle.watts;
  if (joules > 0) {
    const double residual_j = joules - busy_w * busy_s - idle.watts * idle_s;
    const double busy_variance = busy_sd_w * busy_sd_w * busy_s;
    const double idle_variance = idle.sd_w * idle.sd_w * idle_s;
    const double factor = residual_j / std::max(busy_variance * busy_s + idle_variance * idle_s, 1e-9);
    busy_w += factor * busy_variance;
    idle.watts = std::max(idle.watts + factor * idle_variance, kMinBusyPower_w);
  }
  return {std::max(busy_w, kMinBusyToIdlePowerRatio * idle.watts), idle};
}

TimeCurve scale_to_curve_total(TimeCurve curve, const TimeCurve& grid) {
  curve.finish();
  if (curve.total() <= 0) return grid;
  curve.scale(grid.total() / curve.total());
  curve.finish();
  return curve;
}

}  // namespace

std::optional<AttributionMode> parse_attribution_mode(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, AttributionMode>, 3> kAttributionModeNames = {
      {{"regress", AttributionMode::regress},
       {"integral", AttributionMode::integral},
       {"hold", AttributionMode::sample_and_hold}}};
  for (const auto& [text, mode] : kAttributionModeNames) {
    if (text == name) return mode;
  }
  return std::nullopt;
}

double MachineEnergy::time_outside_program_s(std::int64_t from_ns, std::int64_t to_ns) const {
  double sum_s = 0;
  for (const TimeSpan& span : spans_outside_program)
    sum_s += std::max(seconds(std::min(span.end_ns, to_ns) - std::max(span.begin_ns, from_ns)), 0.0);
  return sum_s;
}

double MachineEnergy::program_amount_between(const TimeCurve& curve, std::int64_t from_ns, std::int64_t to_ns) const {
  double amount = curve.amount_between(from_ns, to_ns);
  for (const TimeSpan& span : spans_outside_program)
    amount -= curve.amount_between(std::max(span.begin_ns, from_ns), std::min(span.end_ns, to_ns));
  return std::max(amount, 0.0);
}

std::string MachineEnergy::gpu_domain_name(const std::string& device) const {
  if (const auto gpu = gpus.find(device); gpu != gpus.end()) return gpu->second.domain_name;
  const auto uncounted_gpu = uncounted_gpus.find(device);
  return uncounted_gpu == uncounted_gpus.end() ? device : uncounted_gpu->second.domain_name;
}

GpuPowers find_kernel_powers(DeviceWork work, const PowerEvidence& evidence, TimeSpan span,
                             std::span<const KernelClassPrior> priors) {
  const double gain_spread = evidence.calibrated_sensor.gain_spread;
  const BusyAndIdlePower mean = estimate_busy_and_idle_power(work, evidence);
  std::vector<KernelClassPrior> default_priors;
  if (priors.empty() && evidence.calibrated_sensor.active_idle_power) {
    default_priors = make_default_priors(work.kernels_by_column, mean.idle, mean.busy_w);
    priors = default_priors;
  }
  std::optional<PowerFit> fit = fit_powers(work.timeline, evidence, priors);
  if (!fit) {
    fit = priors.empty() ? make_equal_class_powers(work.timeline.class_count(), mean.busy_w, mean.idle, gain_spread)
                         : make_powers_from_priors(priors, gain_spread);
  }
  fit->uses_default_powers = !default_priors.empty();
  for (KernelClassPower& power : fit->classes) power.watts = std::max(power.watts, kMinBusyPower_w);
  if (work.co_tenant_column) widen_co_tenant_power_uncertainty(*fit, *work.co_tenant_column);
  TimeCurve modelled_j(span, cell_count_for_span(span));
  for (const DeviceWork::Slice& busy_slice : work.slices) {
    modelled_j.add(busy_slice.begin_ns, busy_slice.end_ns,
                   busy_slice.busy_s * fit->class_power_w(busy_slice.column, busy_slice.slowdown));
  }
  modelled_j.finish();
  return {std::move(*fit),       std::move(work.class_columns),
          std::move(modelled_j), std::move(work.kernels_by_column),
          work.co_tenant_column, std::move(work.full_speed_ns)};
}

TimeCurve lag_corrected_curve(const EnergyCurve& curve, std::int64_t lag_ns, const TimeCurve& grid) {
  if (curve.counter_updates().size() < 2) return grid;
  TimeCurve lag_corrected(grid.span(), grid.size());
  const double cell_ns = grid.cell_s() * static_cast<double>(kNanosecondsPerSecond);
  double previous_energy_j = curve.joules_at(grid.span().begin_ns, lag_ns);
  for (std::size_t cell = 0; cell < grid.size(); ++cell) {
    const auto end_ns = grid.span().begin_ns + static_cast<std::int64_t>(cell_ns * static_cast<double>(cell + 1));
    const double until_j = curve.joules_at(end_ns, lag_ns);
    lag_corrected.set(cell, until_j - previous_energy_j);
    previous_energy_j = until_j;
  }
  return scale_to_curve_total(std::move(lag_corrected), grid);
}

TimeCurve modelled_energy_curve(std::span<const EnergyPoint> counter_updates, std::int64_t lag_ns,
                                const GpuPowers& powers, const TimeCurve& busy_s, const TimeCurve& grid) {
  if (counter_updates.size() < 2 || busy_s.size() != grid.size()) return grid;
  const double cell_s = grid.cell_s();
  TimeCurve model(grid.span(), grid.size());
  for (std::size_t cell = 0; cell < grid.size(); ++cell) {
    const double concurrency = std::max(busy_s[cell] / cell_s, 1.0);
    const double idle_s = std::max(cell_s - busy_s[cell], 0.0);
    model.set(cell, powers.modelled_j[cell] / concurrency + powers.power_fit.idle_power().watts * idle_s);
  }
  model.finish();
  const double cell_ns = cell_s * static_cast<double>(kNanosecondsPerSecond);
  const auto edge_ns = [&](std::size_t cell) {
    return grid.span().begin_ns + static_cast<std::int64_t>(cell_ns * static_cast<double>(cell));
  };
  // Before the first and after the last update, keeps the energy over time of `grid`.
  TimeCurve scaled_curve(grid.span(), grid.size());
  const auto copy_grid_energy = [&](std::int64_t from_ns, std::int64_t to_ns) {
    if (to_ns <= from_ns) return;
    for (std::size_t cell = 0; cell < grid.size(); ++cell) {
      const std::int64_t begin_ns = std::max(from_ns, edge_ns(cell));
      const std::int64_t end_ns = std::min(to_ns, edge_ns(cell + 1));
      if (end_ns > begin_ns) scaled_curve.add(begin_ns, end_ns, grid.amount_between(begin_ns, end_ns));
    }
  };
  copy_grid_energy(grid.span().begin_ns, counter_updates.front().time_ns - lag_ns);
  copy_grid_energy(counter_updates.back().time_ns - lag_ns, grid.span().end_ns);
  for (std::size_t i = 1; i < counter_updates.size(); ++i) {
    const std::int64_t from_ns = std::max(counter_updates[i - 1].time_ns - lag_ns, grid.span().begin_ns);
    const std::int64_t to_ns = std::min(counter_updates[i].time_ns - lag_ns, grid.span().end_ns);
    const std::int64_t length_ns = counter_updates[i].time_ns - counter_updates[i - 1].time_ns;
    if (to_ns <= from_ns || length_ns <= 0) continue;
    const double inside_fraction = static_cast<double>(to_ns - from_ns) / static_cast<double>(length_ns);
    const double joules = inside_fraction * (counter_updates[i].joules - counter_updates[i - 1].joules);
    const double modelled_j = model.amount_between(from_ns, to_ns);
    if (modelled_j <= 0) {
      scaled_curve.add(from_ns, to_ns, joules);
      continue;
    }
    const auto first_cell = static_cast<std::size_t>(static_cast<double>(from_ns - grid.span().begin_ns) / cell_ns);
    for (std::size_t cell = first_cell; cell < grid.size() && edge_ns(cell) < to_ns; ++cell) {
      const std::int64_t begin_ns = std::max(from_ns, edge_ns(cell));
      const std::int64_t end_ns = std::min(to_ns, edge_ns(cell + 1));
      if (end_ns > begin_ns)
        scaled_curve.add(begin_ns, end_ns, joules * model.amount_between(begin_ns, end_ns) / modelled_j);
    }
  }
  return scale_to_curve_total(std::move(scaled_curve), grid);
}

TimeCurve sample_and_hold_curve(std::span<const EnergyPoint> counter_updates, const TimeCurve& grid) {
  if (counter_updates.size() < 3) return grid;
  const auto power_w = [&](std::size_t update_index) {
    const double length_s = seconds(counter_updates[update_index + 1].time_ns - counter_updates[update_index].time_ns);
    return length_s > 0 ? (counter_updates[update_index + 1].joules - counter_updates[update_index].joules) / length_s
                        : 0;
  };
  const auto add_constant_power = [](TimeCurve& held_curve, TimeSpan span, double watts) {
    held_curve.add(span.begin_ns, span.end_ns, watts * seconds(span.end_ns - span.begin_ns));
  };
  TimeCurve held_curve(grid.span(), grid.size());
  add_constant_power(held_curve, {grid.span().begin_ns, counter_updates[1].time_ns}, power_w(0));
  for (std::size_t i = 1; i + 1 < counter_updates.size(); ++i)
    add_constant_power(held_curve, {counter_updates[i].time_ns, counter_updates[i + 1].time_ns}, power_w(i - 1));
  add_constant_power(held_curve, {counter_updates.back().time_ns, grid.span().end_ns},
                     power_w(counter_updates.size() - 2));
  return scale_to_curve_total(std::move(held_curve), grid);
}

}  // namespace joulemap::attribution
