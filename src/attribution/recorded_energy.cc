// SPDX-License-Identifier: Apache-2.0
#include "attribution/recorded_energy.h"

#include <algorithm>

#include "base/clock.h"
#include "model/channel_faults.h"
#include "model/edge_rules.h"

namespace joulemap::attribution {
namespace {

// A quarter of an hour at fifty a second: by then powers are known, if at all.
constexpr std::size_t kMostHistory = 45'000;
// Steps that come quicker than this cannot be told apart by sampling, and need not be.
constexpr double kSlowRefresh_s = 0.01;
// A mean over so long changes with nearly every renewal, idle or not.
constexpr double kLongMean_s = 0.5;
// Two values of one firmware are taken to be renewed equally often, this well.
constexpr double kSamePeriod = 1e-4;
constexpr double kGoodPeriod = 0.002;
// How well a device keeps the refresh that its sensor declares. One that does not is found out by its slips.
constexpr double kDeclaredPeriod = 0.001;

// The moments of steps are known best a while later: then the clock has seen what came before and after. Much later it has
// drifted away.
constexpr std::int64_t kPlacedAfter_ns = 20 * kNanosecondsPerSecond;

// About three hours at the usual pace, 3 MB a counter.
constexpr std::size_t kMostReadings = 200'000;

// Of what lies between two steps that are more than this many periods apart, how much an edge between them may be wrong by:
// as EnergyWindow has it of readings that are far apart.
constexpr double kFarApart = 2;
constexpr double kUnevenFarApart = 0.05;

// What a counter had come to at a moment between two of its steps, whose moments are known to `blur_s`. Nothing where no
// step lies on one side of it.
std::optional<EdgeEnergy> edge_between(const std::vector<EnergyPoint>& steps, std::int64_t time_ns, double period_s,
                                       double blur_s) {
  const auto is_before = [](std::int64_t moment_ns, const EnergyPoint& step) { return moment_ns < step.time_ns; };
  const auto after = std::upper_bound(steps.begin(), steps.end(), time_ns, is_before);
  if (after == steps.begin() || after == steps.end()) return std::nullopt;
  const EnergyPoint& before = *std::prev(after);
  const double between_j = after->joules - before.joules;
  const double length_s = seconds(after->time_ns - before.time_ns);
  const double joules = before.joules + between_j * share_of(time_ns, before.time_ns, after->time_ns);
  const double period_j = between_j * std::min(period_s / length_s, 1.0);
  const double far_j = length_s > kFarApart * period_s ? kUnevenFarApart * between_j : 0;
  return EdgeEnergy{joules, kEdgeInterpolated * period_j + far_j + between_j * std::min(blur_s / length_s, 1.0)};
}

}  // namespace

RecordedEnergy::RecordedEnergy(std::span<const Channel> channels, TimeSpan span, std::size_t slices,
                               EdgeReadings edge_readings)
    : span_(span), edge_readings_(edge_readings), slices_(std::max<std::size_t>(slices, 1)) {
  for (const Channel& channel : channels) {
    Follower follower{channel, {}, {}, {}, {}};
    if (tells_energy(channel)) {
      follower.meter.emplace(Meter{EnergyWindow(channel, {}, edge_readings),
                                   PowerCurve(span.begin_ns, span.end_ns, slices_),
                                   false,
                                   false,
                                   0,
                                   {},
                                   StepClock(StepClock::EqualValues::mean_no_step, kNvmlLatch_ns),
                                   TimeCurve(span, cells_for(span)),
                                   {}});
      if (channel.refresh_s >= kSlowRefresh_s) {
        const double declared_ns = channel.refresh_s * static_cast<double>(kNanosecondsPerSecond);
        follower.meter->steps.suggest_period(declared_ns, kDeclaredPeriod * declared_ns);
      }
    } else if (channel.quantity == Quantity::cpu_time) {
      follower.cpu_time.emplace(CpuTime{TimeCurve(span, cells_for(span)), {}});
    } else if (channel.quantity == Quantity::power_history) {
      follower.history.emplace(History{PowerShape(span)});
    } else {
      follower.track = {std::vector<double>(slices_), std::vector<std::uint64_t>(slices_)};
      if (tells_of_others(channel)) follower.track.others.emplace();
    }
    followers_.push_back(std::move(follower));
  }
}

void RecordedEnergy::add(const Sample& sample) {
  if (sample.channel >= followers_.size()) return;  // the reader has reported it
  Follower& follower = followers_[sample.channel];
  if (follower.meter) {
    follow_energy(*follower.meter, follower.channel, sample.reading);
    follow_steps(follower, sample.reading);
  } else if (follower.cpu_time) {
    follow_cpu_time(follower, sample.reading);
  } else if (follower.history) {
    if (sample.reading.code != ReadCode::ok) return;
    const PowerPoint point{sample.reading.time_ns(), static_cast<double>(sample.reading.raw) * follower.channel.scale};
    follower.history->shape.add(point);
    if (follower.history->points.size() < kMostHistory) follower.history->points.push_back(point);
  } else {
    follow_track(follower, sample.reading);
  }
}

// The order of a live measurement: the last reading before the begin was taken for it; the first after the end, too.
void RecordedEnergy::follow_energy(Meter& meter, const Channel& channel, const Reading& reading) {
  const bool is_slow = channel.kind == ChannelKind::counter && channel.refresh_s >= kSlowRefresh_s;
  if (!meter.begun && reading.time_ns() > span_.begin_ns) {
    meter.window.begin(span_.begin_ns);
    meter.begun = true;
  }
  meter.window.observe(reading);
  if (meter.begun && !meter.ended && reading.time_ns() >= span_.end_ns) {
    meter.window.end(span_.end_ns);
    meter.ended = true;
  }
  if (reading.code != ReadCode::ok) return;
  const double joules = meter.window.joules_in_all();
  if (!meter.known_until_ns) meter.known_until_ns = reading.time_ns();
  if (joules > meter.joules) {
    meter.curve.add(*meter.known_until_ns, reading.time_ns(), joules - meter.joules);
    if (is_slow) {
      if (meter.points.empty()) meter.points.push_back({*meter.known_until_ns, meter.joules});
      meter.points.push_back({reading.before_ns, joules});  // its value is that of the call's beginning
    } else {
      meter.energy_j.add(*meter.known_until_ns, reading.time_ns(), joules - meter.joules);
      if (meter.readings.size() < kMostReadings) meter.readings.push_back({reading.time_ns(), joules});
    }
    meter.known_until_ns = reading.time_ns();
    meter.joules = joules;
  }
}

// A counter that is dear to read is read once in many steps: the period of those comes from its device's mean power,
// which is renewed by the same firmware and polled often.
void RecordedEnergy::follow_steps(Follower& follower, const Reading& reading) {
  const Channel& channel = follower.channel;
  if (reading.code != ReadCode::ok || channel.refresh_s < kSlowRefresh_s || channel.device.empty()) return;
  StepClock& power = power_steps_.try_emplace(channel.device, StepClock::EqualValues::prove_nothing).first->second;
  if (channel.kind == ChannelKind::gauge) {
    if (channel.averaged_s >= kLongMean_s) power.observe(reading.before_ns, reading.after_ns, reading.raw);
    return;
  }
  StepClock& steps = follower.meter->steps;
  // Under load the powers are renewed late at times: then they mislead.
  if (power.is_locked() && power.slips() == 0 && power.period_uncertainty_ns() < kGoodPeriod * power.period_ns()) {
    steps.suggest_period(power.period_ns(), power.period_uncertainty_ns() + kSamePeriod * power.period_ns());
  }
  steps.observe(reading.before_ns, reading.after_ns, reading.raw);
  place_points(*follower.meter, reading.before_ns - kPlacedAfter_ns);
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
  std::vector<ChannelEnergy> energies;
  for (Follower& follower : followers_) {
    const bool without_others = follower.track.others && !follower.track.others->is_any();
    if (follower.cpu_time || follower.history || without_others) continue;
    if (!follower.meter) {
      ReportTrack track{follower.channel.name, follower.channel.quantity, {}};
      for (std::size_t i = 0; i < slices_; ++i) {
        const auto count = static_cast<double>(follower.track.counts[i]);
        track.values.push_back(count > 0 ? std::optional(follower.track.sums[i] / count) : std::nullopt);
      }
      result.tracks.push_back(std::move(track));
      continue;
    }
    Meter& meter = *follower.meter;
    if (!meter.begun) meter.window.begin(span_.begin_ns);
    if (!meter.ended) meter.window.end(span_.end_ns);
    energies.push_back(meter.window.result());
    if (edge_readings_ == EdgeReadings::around_them) cut_between_steps(meter, energies.back());
    if (follower.channel.kind != ChannelKind::counter || !meter.steps.is_locked()) continue;
    constexpr auto kSecond = static_cast<double>(kNanosecondsPerSecond);
    const StepInterval last = meter.steps.last_step_before(span_.end_ns);
    result.steps.push_back({follower.channel.name, meter.steps.period_ns() / kSecond, seconds(last.half_width_ns()),
                            last.middle_ns(), meter.steps.slips()});
  }
  result.table = make_domain_table(energies, seconds(span_.end_ns - span_.begin_ns));
  for (const ChannelEnergy& energy : energies) result.table.diagnostics.add_all(describe_faults(energy));
  for (const Follower& follower : followers_) {
    follower.track.throttling.describe(follower.channel.domain, result.table.diagnostics);
    if (follower.track.others) follower.track.others->describe(follower.channel.domain, result.table.diagnostics);
  }
  for (const DomainEnergy& row : result.table.rows) {
    if (!row.joules) continue;
    const auto best = std::find_if(followers_.begin(), followers_.end(), [&](const Follower& follower) {
      return follower.meter && follower.channel.name == row.channel && follower.channel.sensor == row.sensor;
    });
    if (best != followers_.end()) result.power.push_back({row.name, best->meter->curve.watts()});
  }
  add_curves(result);
  result.slice_s = PowerCurve(span_.begin_ns, span_.end_ns, slices_).slice_s();
  return result;
}

// What a slow counter shows is the energy until its last step, not until it was read. A read that came too
// close before a step to be told from one after it shows that step only if the one before was seen already.
void RecordedEnergy::place_points(Meter& meter, std::int64_t until_ns) {
  if (!meter.steps.is_locked()) return;
  const std::int64_t period_ns = std::max(std::int64_t{1}, static_cast<std::int64_t>(meter.steps.period_ns()));
  for (; meter.placed < meter.points.size() && meter.points[meter.placed].time_ns <= until_ns; ++meter.placed) {
    EnergyPoint& point = meter.points[meter.placed];
    const std::int64_t read_ns = point.time_ns;
    const std::int64_t near_ns = read_ns + 2 * meter.steps.half_width_ns();
    std::int64_t step_ns = meter.steps.last_step_before(near_ns).middle_ns();
    // The clock answers with a step that has certainly come. Far from where it is sure that may be one too few.
    step_ns += std::max(std::int64_t{0}, (near_ns - step_ns) / period_ns) * period_ns;
    const bool seen_before = meter.placed > 0 && meter.points[meter.placed - 1].time_ns > step_ns - 3 * period_ns / 2;
    point.time_ns = step_ns <= read_ns ? step_ns : seen_before ? read_ns : step_ns - period_ns;
  }
}

// A part of a run begins and ends where nobody read. Readings there are stale by half of a step or so, which would be a
// tenth of a window of half a second. Where the moments of steps are known, the edges are cut between them.
void RecordedEnergy::cut_between_steps(Meter& meter, ChannelEnergy& energy) const {
  if (!energy.joules || !meter.steps.is_locked() || energy.channel.refresh_s < kSlowRefresh_s) return;
  place_points(meter, INT64_MAX);
  const double period_s = meter.steps.period_ns() / static_cast<double>(kNanosecondsPerSecond);
  const double blur_s = seconds(meter.steps.half_width_ns());
  const std::optional<EdgeEnergy> from = edge_between(meter.points, span_.begin_ns, period_s, blur_s);
  const std::optional<EdgeEnergy> to = edge_between(meter.points, span_.end_ns, period_s, blur_s);
  if (!from || !to) return;
  energy.joules = std::max(to->joules - from->joules, 0.0);
  energy.uncertainty_j = window_uncertainty_j(energy.channel, *energy.joules,
                                              {.elapsed_s = seconds(span_.end_ns - span_.begin_ns),
                                               .missing_s = energy.missing_s,
                                               .variation_j = energy.tally.variation_j,
                                               .begin_edge_j = from->half_width_j,
                                               .end_edge_j = to->half_width_j});
}

// A quick counter is drawn as it is read, and has no points.
void RecordedEnergy::draw_slow_counter(Meter& meter, const PowerShape& shape) {
  place_points(meter, INT64_MAX);
  if (meter.points.size() >= 2) meter.energy_j = drawn_between(meter.points, shape, meter.energy_j);
}

RecordedEnergy::History RecordedEnergy::history_of(const std::string& device) {
  for (Follower& follower : followers_) {
    if (!follower.history || follower.channel.device != device) continue;
    follower.history->shape.finish();
    return std::move(*follower.history);
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

std::vector<BusyStretch> RecordedEnergy::others_on(const std::string& device) const {
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

// The edges of a domain's energy are known better than those of its curve: the curve is brought to the same sum.
void RecordedEnergy::add_curves(Result& result) {
  const EnergyTotals totals = total_energy(result.table.rows);
  const Provenance shown = totals.measured ? Provenance::measured : Provenance::estimated;
  for (const DomainEnergy& row : result.table.rows) {
    if (!row.counted || !row.joules || row.provenance != shown) continue;
    for (Follower& follower : followers_) {
      if (!follower.meter || follower.channel.name != row.channel || follower.channel.sensor != row.sensor) continue;
      History history = history_of(follower.channel.device);
      draw_slow_counter(*follower.meter, history.shape);
      TimeCurve curve = std::move(follower.meter->energy_j);
      curve.finish();
      // A run that was over before two readings: evenly, for want of anything better.
      if (curve.total() <= 0) curve.add(span_.begin_ns, span_.end_ns, *row.joules);
      if (curve.total() > 0) curve.scale(*row.joules / curve.total());
      curve.finish();
      std::vector<EnergyPoint> steps;
      if (follower.meter->steps.is_locked()) steps = std::move(follower.meter->points);
      result.curves.push_back(
          {row.name, follower.channel.domain_class, follower.channel.device, std::move(curve), std::move(steps),
           follower.channel.kind == ChannelKind::counter ? std::move(follower.meter->readings)
                                                         : std::vector<EnergyPoint>(),
           std::move(history.points), *row.joules > 0 ? row.uncertainty_j.value_or(0) / *row.joules : 0,
           follower.channel.device_model, power_limited(follower.channel.device), held_back(follower.channel.device),
           others_on(follower.channel.device), std::move(history.shape)});
      break;
    }
  }
  for (Follower& follower : followers_) {
    if (!follower.cpu_time) continue;
    follower.cpu_time->used_s.finish();
    result.cpu_times_s.emplace(follower.channel.name, std::move(follower.cpu_time->used_s));
    result.cpu_time_readings.emplace(follower.channel.name, std::move(follower.cpu_time->readings));
  }
}

}  // namespace joulemap::attribution
