// SPDX-License-Identifier: Apache-2.0
#include "model/energy_window.h"

#include <algorithm>

#include "base/clock.h"
#include "base/quadrature.h"

namespace joulemap {
namespace {

// A counter that has not moved for this long, or this many of its own refreshes, stands still.
constexpr double kFrozenAfter_s = 0.25;
constexpr double kFrozenAfterRefreshes = 20;

// The end of a live run may fall just after a step: only a tail clearly longer than that is called frozen.
constexpr double kFrozenTail_s = 0.5;

// Half widths of the error one edge adds, in steps of the counter. As read, the two edges together are wrong by less
// than one step. Interpolated, power is taken as even within one refresh; at worst all its energy lies on one side.
constexpr double kEdgeAsRead = 0.71;
constexpr double kEdgeInterpolated = 0.5;

// Energy of a time that nothing is known about: at most twice the power of the time that is known.
constexpr double kMostOfMissing = 2;

std::string reason_for_no_step(const EnergyTally& tally, double elapsed_s, double refresh_s) {
  if (tally.last_code != ReadCode::ok) return std::string(to_string(tally.last_code));
  return elapsed_s > std::max(kFrozenAfter_s, kFrozenAfterRefreshes * refresh_s) ? "frozen" : "too-short";
}

double share_of(std::int64_t time_ns, std::int64_t from_ns, std::int64_t to_ns) {
  if (to_ns <= from_ns) return 1;
  return std::clamp(static_cast<double>(time_ns - from_ns) / static_cast<double>(to_ns - from_ns), 0.0, 1.0);
}

}  // namespace

EnergyWindow::EnergyWindow(const Channel& channel, std::optional<std::int64_t> known_refresh_ns)
    : channel_(channel), accumulator_(channel) {
  if (known_refresh_ns) {
    refresh_sum_ns_ = *known_refresh_ns;
    refresh_count_ = 1;
  }
}

bool EnergyWindow::has_steps() const {
  return channel_.kind == ChannelKind::counter && channel_.provenance == Provenance::measured;
}

void EnergyWindow::observe(const Reading& reading) noexcept {
  const std::uint64_t steps_before = accumulator_.tally().steps;
  const std::optional<EnergyStep> previous = accumulator_.last_step();
  accumulator_.add(reading);
  // The total falls only when a reading turns out to have been torn: then so were the edges taken from it.
  const double joules = accumulator_.tally().joules;
  if (begin_ns_) read_at_begin_j_ = std::min(read_at_begin_j_, joules);
  if (end_ns_) read_at_end_j_ = std::min(read_at_end_j_, joules);
  if (accumulator_.tally().steps == steps_before) return;

  const EnergyStep step = *accumulator_.last_step();
  if (previous) learn_refresh(*previous, step);
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

void EnergyWindow::begin(std::int64_t time_ns) noexcept {
  begin_ns_ = time_ns;
  tally_at_begin_ = accumulator_.tally();
  read_at_begin_j_ = tally_at_begin_.joules;
}

void EnergyWindow::end(std::int64_t time_ns) noexcept {
  end_ns_ = time_ns;
  read_at_end_j_ = accumulator_.tally().joules;
  steps_at_end_ = accumulator_.tally().steps;
}

void EnergyWindow::learn_refresh(const EnergyStep& previous, const EnergyStep& step) noexcept {
  const std::int64_t interval_ns = step.time_ns - previous.time_ns;
  const std::int64_t blur_ns = (step.time_ns - step.not_before_ns) + (previous.time_ns - previous.not_before_ns);
  if (blur_ns * 2 > interval_ns) return;
  const std::int64_t known_ns = refresh_ns().value_or(interval_ns);
  if (interval_ns > known_ns + known_ns / 2) return;                     // it skipped a step
  if (interval_ns * 2 < known_ns) refresh_sum_ns_ = refresh_count_ = 0;  // the earlier ones did
  refresh_sum_ns_ += interval_ns;
  ++refresh_count_;
}

std::optional<std::int64_t> EnergyWindow::refresh_ns() const {
  if (refresh_count_ == 0) return std::nullopt;
  return refresh_sum_ns_ / refresh_count_;
}

bool EnergyWindow::is_settled() const noexcept {
  if (!has_steps()) return true;
  if (end_ns_) return step_after_end_.has_value() || refresh_count_ == 0;
  return refresh_count_ > 0 && (step_before_begin_ || step_after_begin_);
}

double EnergyWindow::joules_so_far() const {
  return (end_ns_ ? read_at_end_j_ : accumulator_.tally().joules) - read_at_begin_j_;
}

double EnergyWindow::refresh_s() const {
  if (const auto known_ns = refresh_ns()) return seconds(*known_ns);
  const std::uint64_t steps = steps_at_end_ - tally_at_begin_.steps;
  if (steps == 0) return channel_.refresh_s;
  return std::max(channel_.refresh_s, seconds(*end_ns_ - *begin_ns_) / static_cast<double>(steps));
}

// Energy of one step: where the refresh is known, the mean power of all that was seen times the refresh; else what
// one change brought on average.
double EnergyWindow::typical_step_j() const {
  const EnergyTally& tally = accumulator_.tally();
  if (tally.steps == 0) return 0;
  const double per_change_j = tally.joules / static_cast<double>(tally.steps);
  const double seen_s = seconds(tally.last_ns - tally.first_ns - tally.gap_ns);
  if (!refresh_ns() || seen_s <= 0) return per_change_j;
  return std::min(per_change_j, tally.joules / seen_s * seconds(*refresh_ns()));
}

// A value as read is stale by half a refresh on average. Without a known refresh both edges are as read, and that cancels.
EnergyWindow::Edge EnergyWindow::edge_as_read(double joules) const {
  const double step_j = typical_step_j();
  return {joules + (refresh_count_ > 0 ? 0.5 * step_j : 0), kEdgeAsRead * step_j};
}

EnergyWindow::Edge EnergyWindow::edge_between(std::int64_t time_ns, const EnergyStep& from,
                                              const EnergyStep& to) const {
  const double joules = from.joules + share_of(time_ns, from.time_ns, to.time_ns) * (to.joules - from.joules);
  const double length_s = std::max(seconds(to.time_ns - from.time_ns), 1e-9);
  const double step_j = std::min(1.0, refresh_s() / length_s) * (to.joules - from.joules);
  return {joules, kEdgeInterpolated * std::max(step_j, typical_step_j())};
}

// The step one refresh before a well-timed one: nobody saw it, but the counter then showed `joules` from it on.
std::optional<EnergyStep> EnergyWindow::step_before(const EnergyStep& step, double joules) const {
  const auto refresh = refresh_ns();
  if (!refresh || step.time_ns - step.not_before_ns > *refresh / 2) return std::nullopt;
  return EnergyStep{step.not_before_ns - *refresh, step.time_ns - *refresh, joules};
}

EnergyWindow::Edge EnergyWindow::begin_edge() const {
  if (!has_steps()) return {read_at_begin_j_, 0};
  if (!step_after_begin_ || refresh_count_ == 0) return edge_as_read(read_at_begin_j_);
  if (step_before_begin_) return edge_between(*begin_ns_, *step_before_begin_, *step_after_begin_);
  const auto before = step_before(*step_after_begin_, read_at_begin_j_);
  return before ? edge_between(*begin_ns_, *before, *step_after_begin_) : edge_as_read(read_at_begin_j_);
}

EnergyWindow::Edge EnergyWindow::end_edge() const {
  if (!has_steps()) return {read_at_end_j_, 0};
  if (!step_after_end_ || refresh_count_ == 0) return edge_as_read(read_at_end_j_);
  const EnergyStep& after = *step_after_end_;
  if (const auto before = step_before(after, read_at_end_j_)) return edge_between(*end_ns_, *before, after);
  // Something kept us from reading for longer than a refresh: several steps may hide in this one. The value read at the end
  // was renewed half a refresh before that reading, on average.
  const std::int64_t half_refresh_ns = refresh_ns().value_or(0) / 2;
  Edge edge = edge_between(*end_ns_, {0, after.not_before_ns - half_refresh_ns, read_at_end_j_}, after);
  edge.half_width_j = std::max(edge.half_width_j, kEdgeInterpolated * (after.joules - read_at_end_j_));
  return edge;
}

void EnergyWindow::judge_missing_time(ChannelEnergy& energy) const {
  const EnergyTally& tally = accumulator_.tally();
  energy.missing_s = seconds(tally.gap_ns - tally_at_begin_.gap_ns);
  if (tally.last_ns < *end_ns_) energy.missing_s += seconds(*end_ns_ - tally.last_ns);
  if (!has_steps() || step_after_end_ || !last_step_before_end_) return;
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
  if (!enclosed || refresh_count_ == 0) {
    energy.reason = reason_for_no_step(accumulator_.tally(), elapsed_s, energy.refresh_s);
    return;
  }
  const double enclosed_j = step_after_end_->joules - from->joules;
  const double share = elapsed_s / seconds(step_after_end_->time_ns - from->time_ns);
  energy.joules = enclosed_j * std::min(share, 1.0);
  energy.uncertainty_j = in_quadrature(kEdgeInterpolated, kEdgeInterpolated) * enclosed_j;
}

void EnergyWindow::measure_between_edges(ChannelEnergy& energy) const {
  const Edge from = begin_edge();
  const Edge to = end_edge();
  energy.joules = std::max(to.joules - from.joules, 0.0);
  judge_missing_time(energy);
  const double elapsed_s = seconds(*end_ns_ - *begin_ns_);
  const double known_s = std::max(elapsed_s - energy.missing_s, 0.0);
  const double missing_j = known_s > 0 ? kMostOfMissing * *energy.joules / known_s * energy.missing_s : 0;
  if (channel_.provenance == Provenance::estimated) {
    const double model_j =
        in_quadrature(channel_.relative_uncertainty * *energy.joules, channel_.uncertainty_w * elapsed_s);
    energy.uncertainty_j = model_j + missing_j;
    return;
  }
  const double quantum_j = has_steps() ? channel_.scale : channel_.scale * elapsed_s;
  const double reading_j = in_quadrature(from.half_width_j, to.half_width_j, quantum_j);
  // A gauge that is a mean over some time tells, at the edges, of a time that lies partly outside of the window. With this
  // allowance a load that begins or ends at an edge lies inside it, however short the window.
  const double lag_j = elapsed_s > 0 ? kMostOfMissing * channel_.averaged_s * *energy.joules / elapsed_s : 0;
  energy.uncertainty_j = in_quadrature(reading_j, energy.tally.variation_j) + missing_j + lag_j;
}

ChannelEnergy EnergyWindow::result() const {
  ChannelEnergy energy{.channel = channel_, .joules = {}, .reason = {}, .tally = accumulator_.tally()};
  const EnergyTally& tally = accumulator_.tally();
  if (!begin_ns_ || !end_ns_ || tally.good < 2) {
    energy.reason = tally.last_code == ReadCode::ok ? "too-short" : std::string(to_string(tally.last_code));
    return energy;
  }
  energy.refresh_s = refresh_s();
  if (has_steps() && steps_at_end_ == tally_at_begin_.steps) {
    measure_within_one_step(energy);
  } else {
    measure_between_edges(energy);
  }
  return energy;
}

}  // namespace joulemap
