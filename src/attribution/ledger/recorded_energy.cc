// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/recorded_energy.h"

#include <algorithm>

#include "base/clock.h"
#include "energy/channel_faults.h"
#include "energy/edge_rules.h"

namespace joulemap::attribution {
namespace {

// Limit of power history samples: 15 minutes at 50 per second. By then powers are identified, if at all.
constexpr std::size_t kMaxPowerHistoryPoints = 45'000;
// Limit of readings per counter: about three hours at the usual sampling rate, 3 MB.
constexpr std::size_t kMaxCounterReadings = 200'000;

// The curve in equal cells.
TimeCurve resample_to_cells(const EnergyCurve& curve, TimeSpan span) {
  TimeCurve cells(span, cell_count_for_span(span));
  const auto edge_ns = [&](std::size_t cell) {
    if (cell == cells.size()) return span.end_ns;
    return span.begin_ns + static_cast<std::int64_t>(cells.cell_s() * 1e9 * static_cast<double>(cell));
  };
  double previous_energy_j = curve.joules_at(span.begin_ns);
  for (std::size_t cell = 0; cell < cells.size(); ++cell) {
    const double until_j = curve.joules_at(edge_ns(cell + 1));
    cells.set(cell, until_j - previous_energy_j);
    previous_energy_j = until_j;
  }
  cells.finish();
  return cells;
}

}  // namespace

RecordedEnergy::RecordedEnergy(std::span<const Channel> channels, TimeSpan span, std::size_t slices)
    : span_(span), slice_count_(std::max<std::size_t>(slices, 1)), curves_(channels) {
  curves_.retain_points_around(span.begin_ns);
  curves_.retain_points_around(span.end_ns);
  for (const Channel& channel : channels) {
    ChannelState& state = channel_states_.emplace_back(ChannelState{channel});
    if (measures_energy_or_power(channel) || channel.quantity == Quantity::power_history) continue;
    if (channel.quantity == Quantity::cpu_time) {
      state.cpu_time.emplace(CpuTime{TimeCurve(span, cell_count_for_span(span)), {}, {}});
    } else {
      state.gauge_track = {std::vector<double>(slice_count_), std::vector<std::uint64_t>(slice_count_)};
      if (is_co_tenant_utilization(channel)) state.gauge_track.co_tenants.emplace();
    }
  }
}

void RecordedEnergy::add(const Sample& sample) {
  if (sample.channel >= channel_states_.size()) return;  // the reader has reported such samples
  ChannelState& state = channel_states_[sample.channel];
  curves_.observe(sample);
  if (curves_.curve_of_channel(sample.channel) != nullptr) {
    add_energy_reading(sample.channel, sample.reading);
  } else if (state.cpu_time) {
    add_cpu_time_reading(state, sample.reading);
  } else if (state.channel.quantity == Quantity::power_history) {
    if (sample.reading.code != ReadCode::ok || state.power_history.size() >= kMaxPowerHistoryPoints) return;
    state.power_history.push_back(
        {sample.reading.time_ns(), static_cast<double>(sample.reading.raw) * state.channel.scale});
  } else {
    add_gauge_reading(state, sample.reading);
  }
}

void RecordedEnergy::add_energy_reading(std::size_t channel, const Reading& reading) {
  ChannelState& state = channel_states_[channel];
  const bool is_counter = state.channel.kind == ChannelKind::counter;
  if (!is_counter || reading.code != ReadCode::ok || state.readings.size() >= kMaxCounterReadings) return;
  const double joules = curves_.curve_of_channel(channel)->tally().joules;
  const double previous_energy_j = state.readings.empty() ? 0 : state.readings.back().joules;
  if (joules > previous_energy_j) state.readings.push_back({reading.time_ns(), joules});
}

void RecordedEnergy::add_cpu_time_reading(ChannelState& state, const Reading& reading) const {
  if (reading.code != ReadCode::ok) return;
  CpuTime& cpu_time = *state.cpu_time;
  if (cpu_time.last_reading && reading.raw > cpu_time.last_reading->raw) {
    const double used_cpu_s = static_cast<double>(reading.raw - cpu_time.last_reading->raw) * state.channel.scale;
    cpu_time.used_cpu_s.add(cpu_time.last_reading->time_ns(), reading.time_ns(), used_cpu_s);
  }
  cpu_time.last_reading = reading;
  cpu_time.readings.push_back({reading.time_ns(), static_cast<double>(reading.raw) * state.channel.scale});
}

void RecordedEnergy::add_gauge_reading(ChannelState& state, const Reading& reading) const {
  if (state.gauge_track.co_tenants) state.gauge_track.co_tenants->add(reading);
  const std::int64_t offset_ns = reading.time_ns() - span_.begin_ns;
  const std::int64_t length_ns = std::max<std::int64_t>(span_.end_ns - span_.begin_ns, 1);
  if (reading.code != ReadCode::ok || offset_ns < 0 || offset_ns >= length_ns) return;
  const auto slice = static_cast<std::size_t>(static_cast<double>(offset_ns) / static_cast<double>(length_ns) *
                                              static_cast<double>(slice_count_));
  state.gauge_track.slice_sums[std::min(slice, slice_count_ - 1)] +=
      static_cast<double>(reading.raw) * state.channel.scale;
  ++state.gauge_track.slice_counts[std::min(slice, slice_count_ - 1)];
  if (state.channel.quantity == Quantity::throttle_reasons) state.gauge_track.throttling.add(reading.raw);
}

RecordedEnergy::Result RecordedEnergy::finish() {
  Result result;
  result.slice_s = seconds(span_.end_ns - span_.begin_ns) / static_cast<double>(slice_count_);
  const std::vector<ChannelEnergy> energies = compute_channel_energies(result);
  add_gauge_tracks(result);
  result.domain_table = make_domain_table(energies, seconds(span_.end_ns - span_.begin_ns));
  for (const ChannelEnergy& energy : energies) result.domain_table.diagnostics.add_all(describe_faults(energy));
  for (const ChannelState& state : channel_states_) {
    state.gauge_track.throttling.add_diagnostics(state.channel.domain, result.domain_table.diagnostics);
    result.clock_readings.readings += state.gauge_track.throttling.clock_readings().readings;
    result.clock_readings.throttled += state.gauge_track.throttling.clock_readings().throttled;
    if (state.gauge_track.co_tenants)
      state.gauge_track.co_tenants->add_co_tenant_diagnostic(state.channel.domain, result.domain_table.diagnostics);
  }
  add_power_series(result);
  add_domain_curves(result);
  return result;
}

std::vector<ChannelEnergy> RecordedEnergy::compute_channel_energies(Result& result) const {
  constexpr auto kNsPerSecond = static_cast<double>(kNanosecondsPerSecond);
  std::vector<ChannelEnergy> energies;
  for (const EnergyCurve& curve : curves_.curves()) {
    energies.push_back(curve.energy_between(span_.begin_ns, span_.end_ns));
    const UpdateTimeEstimator* const clock = curve.clock();
    if (clock == nullptr || !clock->is_locked()) continue;
    const UpdateInterval last_update = clock->last_update_before(span_.end_ns);
    result.counter_updates.push_back({curve.channel().name, clock->period_ns() / kNsPerSecond,
                                      seconds(last_update.half_width_ns()), last_update.midpoint_ns(),
                                      clock->irregular_update_count()});
  }
  return energies;
}

void RecordedEnergy::add_gauge_tracks(Result& result) const {
  for (const ChannelState& state : channel_states_) {
    const bool has_no_co_tenants = state.gauge_track.co_tenants && !state.gauge_track.co_tenants->has_co_tenants();
    if (state.gauge_track.slice_sums.empty() || has_no_co_tenants) continue;
    ReportTrack gauge_track{state.channel.name, state.channel.quantity, {}};
    for (std::size_t i = 0; i < slice_count_; ++i) {
      const auto count = static_cast<double>(state.gauge_track.slice_counts[i]);
      gauge_track.values.push_back(count > 0 ? std::optional(state.gauge_track.slice_sums[i] / count) : std::nullopt);
    }
    result.gauge_tracks.push_back(std::move(gauge_track));
  }
}

std::optional<std::size_t> RecordedEnergy::find_channel_of_domain(const DomainEnergy& row) const {
  for (std::size_t i = 0; i < channel_states_.size(); ++i) {
    const Channel& channel = channel_states_[i].channel;
    if (curves_.curve_of_channel(i) != nullptr && channel.name == row.channel && channel.sensor == row.sensor) return i;
  }
  return std::nullopt;
}

void RecordedEnergy::add_power_series(Result& result) const {
  const double slice_ns = static_cast<double>(span_.end_ns - span_.begin_ns) / static_cast<double>(slice_count_);
  const auto edge_ns = [&](std::size_t slice) {
    if (slice == slice_count_) return span_.end_ns;
    return span_.begin_ns + static_cast<std::int64_t>(slice_ns * static_cast<double>(slice));
  };
  for (const DomainEnergy& row : result.domain_table.rows) {
    const std::optional<std::size_t> channel = row.joules ? find_channel_of_domain(row) : std::nullopt;
    if (!channel) continue;
    PowerSeries& series = result.power_series.emplace_back(PowerSeries{row.name, {}});
    for (std::size_t i = 0; i < slice_count_; ++i)
      series.watts.push_back(curves_.curve_of_channel(*channel)->mean_w({edge_ns(i), edge_ns(i + 1)}));
  }
}

std::vector<PowerPoint> RecordedEnergy::take_power_history(const std::string& device) {
  for (ChannelState& state : channel_states_) {
    if (state.channel.quantity == Quantity::power_history && state.channel.device == device)
      return std::move(state.power_history);
  }
  return {};
}

double RecordedEnergy::power_limited_fraction(const std::string& device) const {
  double share = 0;
  for (const ChannelState& state : channel_states_) {
    if (state.channel.device == device) share = std::max(share, state.gauge_track.throttling.power_limited_fraction());
  }
  return share;
}

std::vector<BusySlice> RecordedEnergy::co_tenant_slices_on(const std::string& device) const {
  for (const ChannelState& state : channel_states_) {
    if (state.gauge_track.co_tenants && state.channel.device == device)
      return state.gauge_track.co_tenants->busy_slices(span_);
  }
  return {};
}

bool RecordedEnergy::is_throttled(const std::string& device) const {
  return std::any_of(channel_states_.begin(), channel_states_.end(), [&](const ChannelState& state) {
    return state.channel.device == device && state.gauge_track.throttling.is_throttled();
  });
}

void RecordedEnergy::add_domain_curves(Result& result) {
  const EnergyTotals totals = total_energy(result.domain_table.rows);
  const Provenance preferred_provenance = totals.measured ? Provenance::measured : Provenance::estimated;
  for (const DomainEnergy& row : result.domain_table.rows) {
    const std::optional<std::size_t> index = find_channel_of_domain(row);
    if (!row.is_counted || !row.joules || row.provenance != preferred_provenance || !index) continue;
    ChannelState& state = channel_states_[*index];
    const EnergyCurve& curve = *curves_.curve_of_channel(*index);
    const std::string& device = state.channel.device;
    std::vector<EnergyPoint> updates = curve.counter_updates();
    // Readings of a slow counter that is read once in each of its periods all show a new value, but not when it
    // updated: the readings replace the updates, with a constant delay that the regression finds as lag.
    const bool is_slow_counter = state.channel.refresh_s >= kMinSlowUpdatePeriod_s;
    const bool is_gpu = state.channel.domain_class == DomainClass::gpu;
    if (updates.empty() && is_gpu) updates = state.readings;
    if (is_slow_counter) state.readings.clear();
    result.domain_curves.push_back(
        {.domain = row.name,
         .domain_class = state.channel.domain_class,
         .device = device,
         .energy_j = resample_to_cells(curve, span_),
         .curve = curve,
         .counter_updates = std::move(updates),
         .readings = std::move(state.readings),
         .power_history = take_power_history(device),
         .relative_uncertainty = *row.joules > 0 ? row.uncertainty_j.value_or(0) / *row.joules : 0,
         .device_model = state.channel.device_model,
         .power_limited_fraction = power_limited_fraction(device),
         .is_throttled = is_throttled(device),
         .co_tenant_slices = co_tenant_slices_on(device)});
  }
  for (ChannelState& state : channel_states_) {
    if (!state.cpu_time) continue;
    state.cpu_time->used_cpu_s.finish();
    result.cpu_times_s.emplace(state.channel.name, std::move(state.cpu_time->used_cpu_s));
    result.cpu_time_readings.emplace(state.channel.name, std::move(state.cpu_time->readings));
  }
}

}  // namespace joulemap::attribution
