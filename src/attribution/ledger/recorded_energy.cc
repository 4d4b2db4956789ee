// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/recorded_energy.h"

#include <algorithm>

#include "base/clock.h"
#include "energy/channel_faults.h"
#include "energy/edge_rules.h"

namespace joulemap::attribution {
namespace {

// 15 minutes at 50 per second: by then powers are identified, if at all.
constexpr std::size_t kMostHistory = 45'000;
// About three hours at the usual sampling rate; 3 MB per counter.
constexpr std::size_t kMostReadings = 200'000;

// The curve in equal cells.
TimeCurve in_cells(const EnergyCurve& curve, TimeSpan span) {
  TimeCurve cells(span, cells_for(span));
  const auto edge_ns = [&](std::size_t cell) {
    if (cell == cells.size()) return span.end_ns;
    return span.begin_ns + static_cast<std::int64_t>(cells.cell_s() * 1e9 * static_cast<double>(cell));
  };
  double before_j = curve.joules_at(span.begin_ns);
  for (std::size_t cell = 0; cell < cells.size(); ++cell) {
    const double until_j = curve.joules_at(edge_ns(cell + 1));
    cells.set(cell, until_j - before_j);
    before_j = until_j;
  }
  cells.finish();
  return cells;
}

}  // namespace

RecordedEnergy::RecordedEnergy(std::span<const Channel> channels, TimeSpan span, std::size_t slices)
    : span_(span), slices_(std::max<std::size_t>(slices, 1)), curves_(channels) {
  curves_.retain_around(span.begin_ns);
  curves_.retain_around(span.end_ns);
  for (const Channel& channel : channels) {
    Follower& follower = followers_.emplace_back(Follower{channel});
    if (measures_energy(channel) || channel.quantity == Quantity::power_history) continue;
    if (channel.quantity == Quantity::cpu_time) {
      follower.cpu_time.emplace(CpuTime{TimeCurve(span, cells_for(span)), {}, {}});
    } else {
      follower.track = {std::vector<double>(slices_), std::vector<std::uint64_t>(slices_)};
      if (is_co_tenant_utilization(channel)) follower.track.others.emplace();
    }
  }
}

void RecordedEnergy::add(const Sample& sample) {
  if (sample.channel >= followers_.size()) return;  // the reader has reported it
  Follower& follower = followers_[sample.channel];
  curves_.observe(sample);
  if (curves_.of(sample.channel) != nullptr) {
    follow_energy(sample.channel, sample.reading);
  } else if (follower.cpu_time) {
    follow_cpu_time(follower, sample.reading);
  } else if (follower.channel.quantity == Quantity::power_history) {
    if (sample.reading.code != ReadCode::ok || follower.history.size() >= kMostHistory) return;
    follower.history.push_back(
        {sample.reading.time_ns(), static_cast<double>(sample.reading.raw) * follower.channel.scale});
  } else {
    follow_track(follower, sample.reading);
  }
}

void RecordedEnergy::follow_energy(std::size_t channel, const Reading& reading) {
  Follower& follower = followers_[channel];
  const bool is_quick = follower.channel.kind == ChannelKind::counter && follower.channel.refresh_s < kSlowRefresh_s;
  if (!is_quick || reading.code != ReadCode::ok || follower.readings.size() >= kMostReadings) return;
  const double joules = curves_.of(channel)->tally().joules;
  const double before_j = follower.readings.empty() ? 0 : follower.readings.back().joules;
  if (joules > before_j) follower.readings.push_back({reading.time_ns(), joules});
}

void RecordedEnergy::follow_cpu_time(Follower& follower, const Reading& reading) const {
  if (reading.code != ReadCode::ok) return;
  CpuTime& known = *follower.cpu_time;
  if (known.last && reading.raw > known.last->raw) {
    const double used_s = static_cast<double>(reading.raw - known.last->raw) * follower.channel.scale;
    known.used_s.add(known.last->time_ns(), reading.time_ns(), used_s);
  }
  known.last = reading;
  known.readings.push_back({reading.time_ns(), static_cast<double>(reading.raw) * follower.channel.scale});
}

void RecordedEnergy::follow_track(Follower& follower, const Reading& reading) const {
  if (follower.track.others) follower.track.others->add(reading);
  const std::int64_t into_ns = reading.time_ns() - span_.begin_ns;
  const std::int64_t length_ns = std::max<std::int64_t>(span_.end_ns - span_.begin_ns, 1);
  if (reading.code != ReadCode::ok || into_ns < 0 || into_ns >= length_ns) return;
  const auto slice = static_cast<std::size_t>(static_cast<double>(into_ns) / static_cast<double>(length_ns) *
                                              static_cast<double>(slices_));
  follower.track.sums[std::min(slice, slices_ - 1)] += static_cast<double>(reading.raw) * follower.channel.scale;
  ++follower.track.counts[std::min(slice, slices_ - 1)];
  if (follower.channel.quantity == Quantity::throttle_reasons) follower.track.throttling.add(reading.raw);
}

RecordedEnergy::Result RecordedEnergy::finish() {
  Result result;
  result.slice_s = seconds(span_.end_ns - span_.begin_ns) / static_cast<double>(slices_);
  const std::vector<ChannelEnergy> energies = channel_energies(result);
  add_tracks(result);
  result.table = make_domain_table(energies, seconds(span_.end_ns - span_.begin_ns));
  for (const ChannelEnergy& energy : energies) result.table.diagnostics.add_all(describe_faults(energy));
  for (const Follower& follower : followers_) {
    follower.track.throttling.describe(follower.channel.domain, result.table.diagnostics);
    if (follower.track.others) follower.track.others->describe(follower.channel.domain, result.table.diagnostics);
  }
  add_power(result);
  add_curves(result);
  return result;
}

std::vector<ChannelEnergy> RecordedEnergy::channel_energies(Result& result) const {
  constexpr auto kSecond = static_cast<double>(kNanosecondsPerSecond);
  std::vector<ChannelEnergy> energies;
  for (const EnergyCurve& curve : curves_.all()) {
    energies.push_back(curve.energy_between(span_.begin_ns, span_.end_ns));
    const CounterClock* const clock = curve.clock();
    if (clock == nullptr || !clock->is_locked()) continue;
    const StepInterval last = clock->last_step_before(span_.end_ns);
    result.steps.push_back({curve.channel().name, clock->period_ns() / kSecond, seconds(last.half_width_ns()),
                            last.middle_ns(), clock->slips()});
  }
  return energies;
}

void RecordedEnergy::add_tracks(Result& result) const {
  for (const Follower& follower : followers_) {
    const bool without_others = follower.track.others && !follower.track.others->is_any();
    if (follower.track.sums.empty() || without_others) continue;
    ReportTrack track{follower.channel.name, follower.channel.quantity, {}};
    for (std::size_t i = 0; i < slices_; ++i) {
      const auto count = static_cast<double>(follower.track.counts[i]);
      track.values.push_back(count > 0 ? std::optional(follower.track.sums[i] / count) : std::nullopt);
    }
    result.tracks.push_back(std::move(track));
  }
}

std::optional<std::size_t> RecordedEnergy::channel_of(const DomainEnergy& row) const {
  for (std::size_t i = 0; i < followers_.size(); ++i) {
    const Channel& channel = followers_[i].channel;
    if (curves_.of(i) != nullptr && channel.name == row.channel && channel.sensor == row.sensor) return i;
  }
  return std::nullopt;
}

void RecordedEnergy::add_power(Result& result) const {
  const double slice_ns = static_cast<double>(span_.end_ns - span_.begin_ns) / static_cast<double>(slices_);
  const auto edge_ns = [&](std::size_t slice) {
    if (slice == slices_) return span_.end_ns;
    return span_.begin_ns + static_cast<std::int64_t>(slice_ns * static_cast<double>(slice));
  };
  for (const DomainEnergy& row : result.table.rows) {
    const std::optional<std::size_t> channel = row.joules ? channel_of(row) : std::nullopt;
    if (!channel) continue;
    PowerSeries& series = result.power.emplace_back(PowerSeries{row.name, {}});
    for (std::size_t i = 0; i < slices_; ++i)
      series.watts.push_back(curves_.of(*channel)->mean_w({edge_ns(i), edge_ns(i + 1)}));
  }
}

std::vector<PowerPoint> RecordedEnergy::history_of(const std::string& device) {
  for (Follower& follower : followers_) {
    if (follower.channel.quantity == Quantity::power_history && follower.channel.device == device)
      return std::move(follower.history);
  }
  return {};
}

double RecordedEnergy::power_limited(const std::string& device) const {
  double share = 0;
  for (const Follower& follower : followers_) {
    if (follower.channel.device == device) share = std::max(share, follower.track.throttling.power_limited());
  }
  return share;
}

std::vector<BusyStretch> RecordedEnergy::co_tenants_on(const std::string& device) const {
  for (const Follower& follower : followers_) {
    if (follower.track.others && follower.channel.device == device) return follower.track.others->inside(span_);
  }
  return {};
}

bool RecordedEnergy::held_back(const std::string& device) const {
  return std::any_of(followers_.begin(), followers_.end(), [&](const Follower& follower) {
    return follower.channel.device == device && follower.track.throttling.held_back();
  });
}

void RecordedEnergy::add_curves(Result& result) {
  const EnergyTotals totals = total_energy(result.table.rows);
  const Provenance shown = totals.measured ? Provenance::measured : Provenance::estimated;
  for (const DomainEnergy& row : result.table.rows) {
    const std::optional<std::size_t> index = channel_of(row);
    if (!row.counted || !row.joules || row.provenance != shown || !index) continue;
    Follower& follower = followers_[*index];
    const EnergyCurve& curve = *curves_.of(*index);
    const std::string& device = follower.channel.device;
    result.curves.push_back({.domain = row.name,
                             .domain_class = follower.channel.domain_class,
                             .device = device,
                             .energy_j = in_cells(curve, span_),
                             .curve = curve,
                             .steps = curve.updates(),
                             .readings = std::move(follower.readings),
                             .history = history_of(device),
                             .uncertainty = *row.joules > 0 ? row.uncertainty_j.value_or(0) / *row.joules : 0,
                             .device_model = follower.channel.device_model,
                             .power_limited = power_limited(device),
                             .held_back = held_back(device),
                             .others = co_tenants_on(device)});
  }
  for (Follower& follower : followers_) {
    if (!follower.cpu_time) continue;
    follower.cpu_time->used_s.finish();
    result.cpu_times_s.emplace(follower.channel.name, std::move(follower.cpu_time->used_s));
    result.cpu_time_readings.emplace(follower.channel.name, std::move(follower.cpu_time->readings));
  }
}

}  // namespace joulemap::attribution
