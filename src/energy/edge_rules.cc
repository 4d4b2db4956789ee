// SPDX-License-Identifier: Apache-2.0
#include "energy/edge_rules.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/clock.h"
#include "base/quadrature.h"

namespace joulemap {

double fraction_of_span(std::int64_t time_ns, std::int64_t from_ns, std::int64_t to_ns) {
  if (to_ns <= from_ns) return 1;
  return std::clamp(static_cast<double>(time_ns - from_ns) / static_cast<double>(to_ns - from_ns), 0.0, 1.0);
}

bool has_counter_updates(const Channel& channel) {
  return channel.kind == ChannelKind::counter && channel.provenance == Provenance::measured;
}

bool is_slowly_updating_counter(const Channel& channel) {
  return has_counter_updates(channel) && channel.refresh_s >= kMinSlowUpdatePeriod_s;
}

double max_edge_error_j(const EnergyPoint& previous_point, const EnergyPoint& next_point, const EnergyPoint& edge,
                        double max_power_w) {
  const double max_energy_j =
      std::min(next_point.joules, previous_point.joules + max_power_w * seconds(edge.time_ns - previous_point.time_ns));
  const double min_energy_j =
      std::max(previous_point.joules, next_point.joules - max_power_w * seconds(next_point.time_ns - edge.time_ns));
  return std::max({max_energy_j - edge.joules, edge.joules - min_energy_j, 0.0});
}

std::string reason_for_no_update(const EnergyTally& tally, double elapsed_s, double refresh_s) {
  if (tally.last_read_code != ReadCode::ok) return std::string(to_string(tally.last_read_code));
  if (tally.valid_reading_count == 0) return "no-readings";
  return elapsed_s > std::max(kFrozenAfter_s, kFrozenAfterUpdatePeriods * refresh_s) ? "frozen" : "too-short";
}

namespace {

// The value of an averaging gauge at an edge covers time partly outside the window. This allowance covers a load that
// begins or ends at an edge. What the window adds to the average leaves it after the averaging time: the energy of the
// window is averaging time x change of the gauge, and what left the average meanwhile.
double gauge_lag_error_j(const Channel& channel, double joules, const WindowErrors& errors) {
  if (errors.elapsed_s <= 0) return 0;
  return std::min(kMaxUnobservedPowerRatio * channel.averaging_time_s * joules / errors.elapsed_s,
                  channel.averaging_time_s * std::abs(errors.gauge_change_w) +
                      kMaxUnobservedPowerRatio * errors.max_gauge_w * errors.elapsed_s);
}

}  // namespace

double window_uncertainty_j(const Channel& channel, double joules, const WindowErrors& errors) {
  const double known_s = std::max(errors.elapsed_s - errors.missing_s, 0.0);
  const double missing_energy_error_j =
      known_s > 0 ? kMaxUnobservedPowerRatio * joules / known_s * errors.missing_s : 0;
  const double edge_half_width_j = add_in_quadrature(errors.begin_edge_half_width_j, errors.end_edge_half_width_j);
  if (channel.provenance == Provenance::estimated) {
    const double model_uncertainty_w = channel.uncertainty_w;
    const double tick_error_s = std::min(std::numbers::sqrt2 * channel.refresh_s, errors.elapsed_s);
    const double tick_error_j = kEstimateBusyPowerRatio * model_uncertainty_w * tick_error_s;
    return add_in_quadrature(add_in_quadrature(channel.relative_uncertainty * joules, tick_error_j),
                             model_uncertainty_w * errors.elapsed_s, edge_half_width_j) +
           missing_energy_error_j + errors.bridged_pause_half_width_j;
  }
  const double quantum_j = has_counter_updates(channel) ? channel.scale : channel.scale * errors.elapsed_s;
  return add_in_quadrature(edge_half_width_j, quantum_j, errors.trapezoid_error_j) + missing_energy_error_j +
         errors.bridged_pause_half_width_j + gauge_lag_error_j(channel, joules, errors);
}

void UpdatePeriodEstimate::add_interval(const CounterUpdate& previous, const CounterUpdate& step) noexcept {
  const std::int64_t interval_ns = step.time_ns - previous.time_ns;
  const std::int64_t time_error_ns = (step.time_ns - step.earliest_ns) + (previous.time_ns - previous.earliest_ns);
  if (time_error_ns * 2 > interval_ns) return;
  const std::int64_t known_period_ns = period_ns().value_or(interval_ns);
  if (interval_ns > known_period_ns + known_period_ns / 2) return;  // reads missed an update in this interval
  if (interval_ns * 2 < known_period_ns)
    interval_sum_ns_ = interval_count_ = 0;  // reads missed an update in each earlier interval
  interval_sum_ns_ += interval_ns;
  ++interval_count_;
}

std::optional<std::int64_t> UpdatePeriodEstimate::period_ns() const {
  if (interval_count_ == 0) return std::nullopt;
  return interval_sum_ns_ / interval_count_;
}

double typical_update_energy_j(const EnergyTally& tally, std::optional<std::int64_t> refresh_ns) {
  if (tally.update_count == 0) return 0;
  const double energy_per_update_j = tally.joules / static_cast<double>(tally.update_count);
  const double observed_s = seconds(tally.last_ns - tally.first_ns - tally.unknown_energy_ns);
  if (!refresh_ns || observed_s <= 0) return energy_per_update_j;
  return std::min(energy_per_update_j, tally.joules / observed_s * seconds(*refresh_ns));
}

}  // namespace joulemap
