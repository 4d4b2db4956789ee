// SPDX-License-Identifier: Apache-2.0
#include "model/energy_window.h"

#include <algorithm>

#include "base/clock.h"
#include "base/quadrature.h"

namespace joulemap {

namespace {

// To see two steps of a slow counter takes long, and reading it densely meanwhile may be dear: until then its sensor's
// word is taken. What is seen corrects it.
constexpr double kSlowRefresh_s = 0.05;

std::optional<std::int64_t> declared_refresh_ns(const Channel& channel) {
  if (!has_steps(channel) || channel.refresh_s < kSlowRefresh_s) return std::nullopt;
  return static_cast<std::int64_t>(channel.refresh_s * static_cast<double>(kNanosecondsPerSecond));
}

// Energy from `from_ns` until `to_ns`, both between two readings of a power that changes evenly between them.
template <class Point>
double energy_within(const Point& before, const Point& after, std::int64_t from_ns, std::int64_t to_ns) {
  if (after.time_ns <= before.time_ns) return 0;
  const double slope = (after.watts - before.watts) / static_cast<double>(after.time_ns - before.time_ns);
  const auto watts_at = [&](std::int64_t time_ns) {
    return before.watts + slope * static_cast<double>(time_ns - before.time_ns);
  };
  return 0.5 * (watts_at(from_ns) + watts_at(to_ns)) * seconds(to_ns - from_ns);
}

// Of what lies between two readings far apart, how much an edge between them may be wrong by: power that is twice the
// mean in one half and nothing in the other makes it 0.25.
constexpr double kUnevenBetweenReadings = 0.05;

}  // namespace

EnergyWindow::EnergyWindow(const Channel& channel, std::optional<std::int64_t> known_refresh_ns,
                           EdgeReadings edge_readings)
    : channel_(channel),
      edge_readings_(edge_readings),
      accumulator_(channel),
      refresh_(known_refresh_ns ? known_refresh_ns : declared_refresh_ns(channel)) {}

void EnergyWindow::observe(const Reading& reading) noexcept {
  const std::uint64_t steps_before = accumulator_.tally().steps;
  const std::optional<EnergyStep> previous = accumulator_.last_step();
  const ReadPoint before{accumulator_.tally().last_ns, accumulator_.tally().joules};
  const bool is_first = accumulator_.tally().good == 0;
  accumulator_.add(reading);
  if (edge_readings_ == EdgeReadings::around_them) {
    if (channel_.kind == ChannelKind::gauge && reading.code == ReadCode::ok) follow_gauge(reading);
    if (channel_.kind == ChannelKind::counter && !is_first) follow_counter(before);
  }
  // The total falls only when a reading turns out to have been torn: then so were the edges taken from it.
  const double joules = accumulator_.tally().joules;
  if (begin_ns_) read_at_begin_j_ = std::min(read_at_begin_j_, joules);
  if (end_ns_) read_at_end_j_ = std::min(read_at_end_j_, joules);
  if (even_at_begin_) even_at_begin_->joules = std::min(even_at_begin_->joules, joules);
  if (even_at_end_) even_at_end_->joules = std::min(even_at_end_->joules, joules);
  if (accumulator_.tally().steps == steps_before) return;

  const EnergyStep step = *accumulator_.last_step();
  if (previous) refresh_.learn(*previous, step);
  if (!begin_ns_) {
    step_before_begin_ = step;
  } else if (!step_after_begin_) {
    step_after_begin_ = step;
  }
  if (!end_ns_) {
    last_step_before_end_ = step;
  } else if (!step_after_end_) {
    step_after_end_ = step;
  }
}

void EnergyWindow::follow_gauge(const Reading& reading) noexcept {
  if (gauge_ && reading.time_ns() < gauge_->time_ns) return;
  const PowerPoint now{reading.time_ns(), static_cast<double>(reading.raw) * channel_.scale};
  const bool holds_begin = begin_ns_ && gauge_ && gauge_->time_ns <= *begin_ns_ && now.time_ns > *begin_ns_;
  if (holds_begin) read_at_begin_j_ += energy_within(*gauge_, now, gauge_->time_ns, *begin_ns_);
  gauge_before_ = gauge_;
  gauge_ = now;
}

// What a counter showed at an edge that lies between two readings, if it grew evenly.
void EnergyWindow::follow_counter(const ReadPoint& before) noexcept {
  const ReadPoint now{accumulator_.tally().last_ns, accumulator_.tally().joules};
  if (now.time_ns <= before.time_ns || now.joules < before.joules) return;
  const auto joules_at = [&](std::int64_t time_ns) {
    return before.joules + (now.joules - before.joules) * share_of(time_ns, before.time_ns, now.time_ns);
  };
  if (begin_ns_ && before.time_ns <= *begin_ns_ && now.time_ns > *begin_ns_) {
    even_at_begin_ = {joules_at(*begin_ns_), now.joules - before.joules, now.time_ns - before.time_ns};
  }
  counter_before_ = before;
}

void EnergyWindow::begin(std::int64_t time_ns) noexcept {
  begin_ns_ = time_ns;
  tally_at_begin_ = accumulator_.tally();
  read_at_begin_j_ = tally_at_begin_.joules;
}

void EnergyWindow::end(std::int64_t time_ns) noexcept {
  end_ns_ = time_ns;
  read_at_end_j_ = accumulator_.tally().joules;
  read_at_end_late_ns_ = std::max(accumulator_.tally().last_ns - time_ns, std::int64_t{0});
  steps_at_end_ = accumulator_.tally().steps;
  const EnergyTally& tally = accumulator_.tally();
  if (counter_before_ && counter_before_->time_ns <= time_ns && tally.last_ns > time_ns) {
    const double share = share_of(time_ns, counter_before_->time_ns, tally.last_ns);
    const double between_j = tally.joules - counter_before_->joules;
    even_at_end_ = {counter_before_->joules + share * between_j, between_j, tally.last_ns - counter_before_->time_ns};
  }
  const bool holds_end = gauge_before_ && gauge_before_->time_ns <= time_ns && gauge_->time_ns > time_ns;
  if (holds_end) read_at_end_j_ -= energy_within(*gauge_before_, *gauge_, time_ns, gauge_->time_ns);
}

bool EnergyWindow::is_settled() const noexcept {
  if (!has_steps(channel_)) return true;
  if (end_ns_) return step_after_end_.has_value() || !refresh_.is_known();
  return refresh_.is_known() && (step_before_begin_ || step_after_begin_);
}

double EnergyWindow::joules_so_far() const {
  return (end_ns_ ? read_at_end_j_ : accumulator_.tally().joules) - read_at_begin_j_;
}

double EnergyWindow::refresh_s() const {
  if (const auto known_ns = refresh_.ns()) return seconds(*known_ns);
  const std::uint64_t steps = steps_at_end_ - tally_at_begin_.steps;
  if (steps == 0) return channel_.refresh_s;
  return std::max(channel_.refresh_s, seconds(*end_ns_ - *begin_ns_) / static_cast<double>(steps));
}

// A value as read is stale by half a refresh on average. Without a known refresh both edges are as read, and that cancels.
EdgeEnergy EnergyWindow::edge_as_read(double joules) const {
  const double step_j = typical_step_j(accumulator_.tally(), refresh_.ns());
  return {joules + (refresh_.is_known() ? 0.5 * step_j : 0), kEdgeAsRead * step_j};
}

EdgeEnergy EnergyWindow::edge_between(std::int64_t time_ns, const EnergyStep& from, const EnergyStep& to) const {
  const double length_s = std::max(seconds(to.time_ns - from.time_ns), 1e-9);
  const double step_j = std::min(1.0, refresh_s() / length_s) * (to.joules - from.joules);
  const double uneven_j = std::max(step_j, typical_step_j(accumulator_.tally(), refresh_.ns()));
  EdgeEnergy edge = interpolate_edge(time_ns, from, to, uneven_j);
  // Whoever was kept from reading knows the moment of a step only that well; the power between the two tells what such a
  // time is worth.
  const double share = share_of(time_ns, from.time_ns, to.time_ns);
  const double blur_s =
      (1 - share) * seconds(from.time_ns - from.not_before_ns) + share * seconds(to.time_ns - to.not_before_ns);
  edge.half_width_j += (to.joules - from.joules) * std::min(blur_s / length_s, 1.0);
  return edge;
}

// The step one refresh before a well-timed one: nobody saw it, but the counter then showed `joules` from it on.
std::optional<EnergyStep> EnergyWindow::step_before(const EnergyStep& step, double joules) const {
  const auto refresh = refresh_.ns();
  if (!refresh || step.time_ns - step.not_before_ns > *refresh / 2) return std::nullopt;
  return EnergyStep{step.not_before_ns - *refresh, step.time_ns - *refresh, joules};
}

// Whoever reads a counter once in many of its steps does not know which of them were large.
bool EnergyWindow::is_seldom_read(const std::optional<EvenEdge>& edge) const {
  return edge && edge->between_ns > 2 * refresh_.ns().value_or(0);
}

EdgeEnergy EnergyWindow::edge_between_readings(const EvenEdge& edge) const {
  EdgeEnergy as_read = edge_as_read(edge.joules);
  as_read.half_width_j += kUnevenBetweenReadings * edge.between_j;
  return as_read;
}

EdgeEnergy EnergyWindow::begin_edge() const {
  if (!has_steps(channel_)) return {read_at_begin_j_, 0};
  if (is_seldom_read(even_at_begin_)) return edge_between_readings(*even_at_begin_);
  if (!refresh_.is_known()) return edge_as_read(even_at_begin_ ? even_at_begin_->joules : read_at_begin_j_);
  if (!step_after_begin_) return edge_as_read(read_at_begin_j_);
  if (step_before_begin_) return edge_between(*begin_ns_, *step_before_begin_, *step_after_begin_);
  const auto before = step_before(*step_after_begin_, read_at_begin_j_);
  return before ? edge_between(*begin_ns_, *before, *step_after_begin_) : edge_as_read(read_at_begin_j_);
}

EdgeEnergy EnergyWindow::end_edge() const {
  if (!has_steps(channel_)) return {read_at_end_j_, 0};
  if (is_seldom_read(even_at_end_)) return edge_between_readings(*even_at_end_);
  if (!refresh_.is_known()) return edge_as_read(even_at_end_ ? even_at_end_->joules : read_at_end_j_);
  if (!step_after_end_) return edge_as_read(read_at_end_j_);
  const EnergyStep& after = *step_after_end_;
  if (const auto before = step_before(after, read_at_end_j_)) {
    EdgeEnergy edge = edge_between(*end_ns_, *before, after);
    // What was to be read at the end was read later, when the counter had stepped again: that is taken off.
    const std::int64_t too_late_ns = std::clamp(before->time_ns - *end_ns_, std::int64_t{0}, read_at_end_late_ns_);
    const double refreshes = static_cast<double>(too_late_ns) / static_cast<double>(after.time_ns - before->time_ns);
    edge.joules -= refreshes * (after.joules - before->joules);
    edge.half_width_j += refreshes * (after.joules - before->joules);
    return edge;
  }
  // Something kept us from reading for longer than a refresh: several steps may hide in this one. The value read at the end
  // was renewed half a refresh before that reading, on average.
  const std::int64_t half_refresh_ns = refresh_.ns().value_or(0) / 2;
  const std::int64_t seen_ns = after.not_before_ns;
  const EnergyStep before{seen_ns - 2 * half_refresh_ns, seen_ns - half_refresh_ns, read_at_end_j_};
  EdgeEnergy edge = edge_between(*end_ns_, before, after);
  edge.half_width_j = std::max(edge.half_width_j, kEdgeInterpolated * (after.joules - read_at_end_j_));
  return edge;
}

void EnergyWindow::judge_missing_time(ChannelEnergy& energy) const {
  const EnergyTally& tally = accumulator_.tally();
  energy.missing_s = seconds(tally.gap_ns - tally_at_begin_.gap_ns);
  if (tally.last_ns < *end_ns_) energy.missing_s += seconds(*end_ns_ - tally.last_ns);
  if (!has_steps(channel_) || step_after_end_ || !last_step_before_end_) return;
  const std::int64_t moved_ns = std::max(last_step_before_end_->time_ns, *begin_ns_);
  const double still_s = seconds(std::min(tally.last_ns, *end_ns_) - moved_ns);
  if (still_s <= std::max(kFrozenTail_s, kFrozenAfterRefreshes * energy.refresh_s)) return;
  energy.frozen_s = still_s;
  energy.missing_s += still_s;
}

// No step fell into the window: it lies between two neighbouring ones and has its share of what they enclose. Both edges
// hang on the same two steps, so the energy cannot come out as zero or less.
void EnergyWindow::measure_within_one_step(ChannelEnergy& energy) const {
  const double elapsed_s = seconds(*end_ns_ - *begin_ns_);
  std::optional<EnergyStep> from = step_before_begin_;
  if (!from && step_after_end_) from = step_before(*step_after_end_, read_at_begin_j_);
  const bool enclosed = from && step_after_end_ && step_after_end_->time_ns > from->time_ns &&
                        step_after_end_->joules > from->joules;  // less, when a torn value was taken back
  if (!enclosed || !refresh_.is_known()) {
    energy.reason = reason_for_no_step(accumulator_.tally(), elapsed_s, energy.refresh_s);
    return;
  }
  const double enclosed_j = step_after_end_->joules - from->joules;
  const double share = elapsed_s / seconds(step_after_end_->time_ns - from->time_ns);
  energy.joules = enclosed_j * std::min(share, 1.0);
  energy.uncertainty_j = in_quadrature(kEdgeInterpolated, kEdgeInterpolated) * enclosed_j;
}

void EnergyWindow::measure_between_edges(ChannelEnergy& energy) const {
  const EdgeEnergy from = begin_edge();
  const EdgeEnergy to = end_edge();
  energy.joules = std::max(to.joules - from.joules, 0.0);
  judge_missing_time(energy);
  const double elapsed_s = seconds(*end_ns_ - *begin_ns_);
  energy.uncertainty_j = window_uncertainty_j(channel_, *energy.joules,
                                              {.elapsed_s = elapsed_s,
                                               .missing_s = energy.missing_s,
                                               .variation_j = energy.tally.variation_j,
                                               .begin_edge_j = from.half_width_j,
                                               .end_edge_j = to.half_width_j});
}

ChannelEnergy EnergyWindow::result() const {
  ChannelEnergy energy{.channel = channel_, .joules = {}, .reason = {}, .tally = accumulator_.tally()};
  const EnergyTally& tally = accumulator_.tally();
  if (!begin_ns_ || !end_ns_ || tally.good < 2) {
    energy.reason = tally.last_code == ReadCode::ok ? "too-short" : std::string(to_string(tally.last_code));
    return energy;
  }
  energy.refresh_s = refresh_s();
  if (has_steps(channel_) && steps_at_end_ == tally_at_begin_.steps) {
    measure_within_one_step(energy);
  } else {
    measure_between_edges(energy);
  }
  return energy;
}

}  // namespace joulemap
