// SPDX-License-Identifier: Apache-2.0
#include "model/energy_window.h"

#include <algorithm>

#include "base/clock.h"
#include "base/quadrature.h"

namespace joulemap {
namespace {

// A counter that has not moved for this long, or this many of its own refreshes, stands still.
constexpr double kFrozenAfter_s = 0.1;
constexpr double kFrozenAfterRefreshes = 20;

// The end of a live run may fall just after a step: only a tail clearly longer than that is called frozen.
constexpr double kFrozenTail_s = 0.5;

// Half widths at 95 % of the error one edge adds, in units of (power x refresh). As read, the staleness is
// uniform over a refresh and the two edges together give a triangular error whose half width is 0.78: 0.55
// for each. Interpolated, power is taken as even within one refresh; at worst all of its energy lies on one
// side.
constexpr double kEdgeAsRead = 0.55;
constexpr double kEdgeInterpolated = 0.5;

std::string reason_for_no_step(const EnergyTally& tally, double elapsed_s, double refresh_s) {
  if (tally.last_code != ReadCode::ok) return std::string(to_string(tally.last_code));
  return elapsed_s > std::max(kFrozenAfter_s, kFrozenAfterRefreshes * refresh_s) ? "frozen" : "too-short";
}

double share_of(std::int64_t time_ns, std::int64_t from_ns, std::int64_t to_ns) {
  if (to_ns <= from_ns) return 1;
  return std::clamp(static_cast<double>(time_ns - from_ns) / static_cast<double>(to_ns - from_ns), 0.0, 1.0);
}

// Seen within a good part of a refresh: then it is the first step that followed, and its moment is known.
bool is_well_timed(const EnergyStep& step, std::int64_t refresh_ns) {
  return step.time_ns - step.not_before_ns <= refresh_ns / 2;
}

}  // namespace

void EnergyWindow::observe(const Reading& reading) noexcept {
  const std::uint64_t steps_before = accumulator_.tally().steps;
  const std::optional<EnergyStep> previous = accumulator_.last_step();
  accumulator_.add(reading);
  // The total falls only when a reading turns out to have been torn: then so were the edges taken from it.
  const double joules = accumulator_.tally().joules;
  if (begin_ns_) joules_at_begin_ = std::min(joules_at_begin_, joules);
  if (end_ns_) joules_at_end_ = std::min(joules_at_end_, joules);
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
  joules_at_begin_ = tally_at_begin_.joules;
}

void EnergyWindow::end(std::int64_t time_ns) noexcept {
  end_ns_ = time_ns;
  joules_at_end_ = accumulator_.tally().joules;
  steps_at_end_ = accumulator_.tally().steps;
}

void EnergyWindow::learn_refresh(const EnergyStep& previous, const EnergyStep& step) noexcept {
  const std::int64_t interval_ns = step.time_ns - previous.time_ns;
  const std::int64_t blur_ns =
      (step.time_ns - step.not_before_ns) + (previous.time_ns - previous.not_before_ns);
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
  if (!interpolates()) return true;
  if (end_ns_) return step_after_end_.has_value() || refresh_count_ == 0;
  return refresh_count_ > 0 && (step_before_begin_ || step_after_begin_);
}

double EnergyWindow::refresh_s() const {
  if (const auto known_ns = refresh_ns()) return seconds(*known_ns);
  const std::uint64_t steps = steps_at_end_ - tally_at_begin_.steps;
  if (steps == 0) return channel_.refresh_s;
  return std::max(channel_.refresh_s, seconds(*end_ns_ - *begin_ns_) / static_cast<double>(steps));
}

double EnergyWindow::joules_at_begin(bool& interpolated) const {
  interpolated = interpolates() && refresh_count_ > 0 && step_after_begin_;
  if (!interpolated) return joules_at_begin_;
  const EnergyStep& after = *step_after_begin_;
  if (step_before_begin_) {
    const double share = share_of(*begin_ns_, step_before_begin_->time_ns, after.time_ns);
    return step_before_begin_->joules + share * (after.joules - step_before_begin_->joules);
  }
  interpolated = is_well_timed(after, *refresh_ns());
  if (!interpolated) return joules_at_begin_;
  const double share = share_of(*begin_ns_, after.time_ns - *refresh_ns(), after.time_ns);
  return joules_at_begin_ + share * (after.joules - joules_at_begin_);
}

double EnergyWindow::joules_at_end(bool& interpolated) const {
  interpolated = interpolates() && refresh_count_ > 0 && step_after_end_ &&
                 is_well_timed(*step_after_end_, *refresh_ns());
  if (!interpolated) return joules_at_end_;
  // The value read at the end was renewed one refresh before the step that followed.
  const std::int64_t renewed_ns = step_after_end_->time_ns - *refresh_ns();
  const double share = share_of(*end_ns_, renewed_ns, step_after_end_->time_ns);
  return joules_at_end_ + share * (step_after_end_->joules - joules_at_end_);
}

void EnergyWindow::judge_missing_time(ChannelEnergy& energy) const {
  const EnergyTally& tally = accumulator_.tally();
  energy.missing_s = seconds(tally.gap_ns - tally_at_begin_.gap_ns);
  if (tally.last_ns < *end_ns_) energy.missing_s += seconds(*end_ns_ - tally.last_ns);
  if (!interpolates() || step_after_end_ || !last_step_before_end_) return;
  const std::int64_t moved_ns = std::max(last_step_before_end_->time_ns, *begin_ns_);
  const double still_s = seconds(std::min(tally.last_ns, *end_ns_) - moved_ns);
  if (still_s <= std::max(kFrozenTail_s, kFrozenAfterRefreshes * energy.refresh_s)) return;
  energy.frozen_s = still_s;
  energy.missing_s += still_s;
}

double EnergyWindow::uncertainty_j(const ChannelEnergy& energy, bool begin_interpolated,
                                   bool end_interpolated) const {
  const double elapsed_s = seconds(*end_ns_ - *begin_ns_);
  const double known_s = std::max(elapsed_s - energy.missing_s, 0.0);
  const double power_w = known_s > 0 ? *energy.joules / known_s : 0;
  const double missing_j = power_w * energy.missing_s;
  if (channel_.provenance == Provenance::estimated) {
    return channel_.relative_uncertainty * *energy.joules + missing_j;
  }
  const double step_j = power_w * energy.refresh_s;
  const double edges_j = in_quadrature((begin_interpolated ? kEdgeInterpolated : kEdgeAsRead) * step_j,
                                       (end_interpolated ? kEdgeInterpolated : kEdgeAsRead) * step_j);
  const double quantum_j =
      channel_.kind == ChannelKind::counter ? channel_.scale : channel_.scale * elapsed_s;
  return in_quadrature(edges_j, quantum_j, energy.tally.variation_j) + missing_j;
}

ChannelEnergy EnergyWindow::result() const {
  ChannelEnergy energy{.channel = channel_, .joules = {}, .reason = {}, .tally = accumulator_.tally()};
  const EnergyTally& tally = accumulator_.tally();
  if (!begin_ns_ || !end_ns_ || tally.good < 2) {
    energy.reason = tally.last_code == ReadCode::ok ? "too-short" : std::string(to_string(tally.last_code));
    return energy;
  }
  energy.refresh_s = refresh_s();
  const double elapsed_s = seconds(*end_ns_ - *begin_ns_);
  if (interpolates() && tally.steps == 0) {
    energy.reason = reason_for_no_step(tally, elapsed_s, energy.refresh_s);
    return energy;
  }
  bool begin_interpolated = false;
  bool end_interpolated = false;
  const double from_j = joules_at_begin(begin_interpolated);
  const double to_j = joules_at_end(end_interpolated);
  energy.joules = std::max(to_j - from_j, 0.0);
  judge_missing_time(energy);
  if (interpolates() && steps_at_end_ == tally_at_begin_.steps && !(begin_interpolated && end_interpolated)) {
    // Alive before or after, but not seen to move inside: zero would be a lie.
    energy.joules.reset();
    energy.reason = reason_for_no_step(tally, elapsed_s, energy.refresh_s);
    return energy;
  }
  energy.uncertainty_j = uncertainty_j(energy, begin_interpolated, end_interpolated);
  return energy;
}

}  // namespace joulemap
