// SPDX-License-Identifier: Apache-2.0
#include "energy/counter_clock.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace joulemap {
namespace {

// CLOCK_MONOTONIC drifts against the device by up to some 1e-5, and not evenly (NTP slews it).
constexpr double kDrift = 2e-5;

// Relative half width up to which a first period estimate is accepted: it identifies updates several periods ahead.
constexpr double kFirstPeriodTolerance = 0.15;
constexpr double kMinPeriod_ns = 1e6;

// A slip (an update outside its expected interval) adds this to recent_slips_, an update that fits subtracts 1: no
// valid period has 20 % slips.
constexpr int kSlipWeight = 4;
constexpr int kSlipsUntilPeriodReset = 3;
constexpr std::uint64_t kSlipsUntilLatchReset = 3;

// The period is computed over at most this many updates. Over more, drift exceeds the uncertainty of the result.
constexpr double kUpdatesPerAnchor = 1024;

constexpr double kMaxHiddenUpdates = 5;

// Values of one firmware are assumed to have the same period, with this relative tolerance (on an H200 they agreed
// within the resolution of 0.02 %). A period is shared only when it is known to kSharedPeriodTolerance.
constexpr double kPeriodAgreement = 1e-4;
constexpr double kSharedPeriodTolerance = 0.002;

// Whether a value in [low, high] can be a multiple (two or more) of a value in [part_low, part_high].
bool is_multiple(double low, double high, double part_low, double part_high) {
  for (double times = 2; times <= kMaxHiddenUpdates; ++times) {
    if (low <= times * part_high && high >= times * part_low) return true;
  }
  return false;
}

}  // namespace

void CounterClock::observe(std::int64_t before_ns, std::int64_t read_end_ns, std::uint64_t raw) noexcept {
  const bool early = irregular_updates_ < kSlipsUntilLatchReset;
  const std::int64_t after_ns = early ? std::min(read_end_ns, before_ns + latched_within_ns_) : read_end_ns;
  if (!last_read_) {
    origin_ns_ = before_ns;
    last_read_ = Read{before_ns, raw};
    unchanged_since_ns_ = last_end_ns_ = after_ns;
    return;
  }
  const Read previous = *last_read_;
  if (before_ns < last_end_ns_) return;  // a read that overlaps the previous one is not usable
  last_read_ = Read{before_ns, raw};
  last_end_ns_ = after_ns;
  const auto relative = [this](std::int64_t time_ns) { return static_cast<double>(time_ns - origin_ns_); };
  if (raw != previous.raw) {
    unchanged_since_ns_ = after_ns;
    on_change({relative(previous.before_ns) - jitter_ns_, relative(after_ns) + jitter_ns_});
    trusted_period_ = period_;
  } else if (equal_values_ == EqualValues::mean_no_update) {
    on_unchanged_value({relative(unchanged_since_ns_) + jitter_ns_, relative(before_ns) - jitter_ns_});
  }
}

void CounterClock::suggest_period(double period_ns, double tolerance_ns) noexcept {
  const Range suggested{period_ns - tolerance_ns, period_ns + tolerance_ns};
  if (period_) {
    const Range both{std::max(period_->low, suggested.low), std::min(period_->high, suggested.high)};
    const double drift_ns = kDrift * period_ns;
    if (both.width() >= 2 * drift_ns)
      trusted_period_ = period_ = both;  // otherwise the two disagree, or the
                                         // known period is as accurate
    return;
  }
  trusted_period_ = period_ = suggested;
  // A change that was located to less than a period during the search is a known update.
  if (narrowest_change_ && narrowest_change_->width() < period_->low) set_anchor(*narrowest_change_);
  last_change_.reset();
  narrowest_change_.reset();
}

CounterClock::Range CounterClock::after_updates(double updates) const {
  if (updates >= 0) return {update_->low + updates * period_->low, update_->high + updates * period_->high};
  return {update_->low + updates * period_->high, update_->high + updates * period_->low};
}

double CounterClock::updates_to(double time) const {
  return std::round((time - update_->midpoint()) / period_->midpoint());
}

// Consecutive changes are one update period apart, or several if reads missed updates, so a first estimate may be too
// long. A later change that arrives too early counts as an irregular update (slip); several slips restart the search
// for the period.
void CounterClock::find_period(Range moments) noexcept {
  const std::optional<Range> previous = last_change_;
  last_change_ = moments;
  if (!narrowest_change_ || moments.width() <= narrowest_change_->width()) narrowest_change_ = moments;
  if (!previous) return;
  const Range guess{moments.low - previous->high, moments.high - previous->low};
  if (guess.low < kMinPeriod_ns || guess.width() / 2 > kFirstPeriodTolerance * guess.midpoint()) return;
  Range agreed = guess;
  if (equal_values_ == EqualValues::are_inconclusive) {
    if (!candidate_) {
      candidate_ = guess;
      return;
    }
    agreed = {std::max(guess.low, candidate_->low), std::min(guess.high, candidate_->high)};
    if (agreed.empty()) {
      // An interval that is a multiple of the candidate contains updates that repeated a value. Otherwise one of the
      // two intervals is disturbed, or the candidate contains such updates: start again from the new interval.
      if (!is_multiple(guess.low, guess.high, candidate_->low, candidate_->high)) candidate_ = guess;
      return;
    }
  }
  period_ = agreed;
  candidate_.reset();
  last_change_.reset();
  narrowest_change_.reset();
  set_anchor(moments);
}

void CounterClock::set_anchor(Range update) noexcept {
  update_ = update;
  anchor_ = update;
  updates_from_anchor_ = 0;
}

void CounterClock::slip() noexcept {
  ++irregular_updates_;
  update_.reset();
  period_ = trusted_period_;  // unchanged values since the last change have narrowed the period wrongly
  // Several slips show that reads do not return the value at their start. What was derived from that is wrong, too.
  const bool resets_latch = latched_within_ns_ < kLatchedDuringWholeRead && irregular_updates_ == kSlipsUntilLatchReset;
  recent_slips_ += kSlipWeight;
  if (recent_slips_ < kSlipWeight * kSlipsUntilPeriodReset && !resets_latch) return;
  recent_slips_ = 0;
  period_.reset();
}

void CounterClock::on_change(Range moments) noexcept {
  if (!period_) {
    find_period(moments);
    return;
  }
  if (moments.width() >= period_->low) return;  // such a long interval always contains an update
  if (!update_) {
    set_anchor(moments);
    return;
  }
  const double nearest = updates_to(moments.midpoint());
  if (after_updates(nearest).width() >= period_->low) {  // the known update is too old to identify this one
    set_anchor(moments);
    return;
  }
  int candidates = 0;
  double updates = 0;
  Range overlap;
  for (double n = nearest - 1; n <= nearest + 1; ++n) {
    const Range update = after_updates(n);
    const Range common{std::max(update.low, moments.low), std::min(update.high, moments.high)};
    if (common.empty()) continue;
    ++candidates;
    updates = n;
    overlap = common;
  }
  if (candidates == 0) {
    slip();
    if (period_) set_anchor(moments);
  } else if (candidates == 1) {
    narrow(updates, overlap);
  }
}

void CounterClock::on_unchanged_value(Range moments) noexcept {
  if (!period_ || !update_ || moments.empty()) return;
  if (moments.width() >= period_->high) {
    slip();
    return;
  }
  // A span without an update may cut off the end of one update's interval and the start of the next one's.
  const double first = updates_to(moments.low) - 1;
  const double last = updates_to(moments.high) + 1;
  double moved = 0;
  for (double n = first; n <= last; ++n) {
    Range update = after_updates(n - moved);
    if (moments.low <= update.low && moments.high >= update.high) {
      slip();
      return;
    }
    const bool cuts_beginning = moments.low <= update.low && moments.high > update.low;
    const bool cuts_end = moments.high >= update.high && moments.low < update.high;
    if (!cuts_beginning && !cuts_end) continue;
    if (cuts_beginning) update.low = moments.high;
    if (cuts_end) update.high = moments.low;
    narrow(n - moved, update);
    if (!period_ || !update_) return;
    moved = n;
  }
}

void CounterClock::narrow(double updates, Range update) noexcept {
  update_ = update;
  updates_from_anchor_ += updates;
  if (recent_slips_ > 0) --recent_slips_;
  narrow_period();
  if (!update_) return;
  const bool anchor_is_coarse = anchor_.width() > 2 * update_->width();
  if (anchor_is_coarse || updates_from_anchor_ >= kUpdatesPerAnchor || updates_from_anchor_ < 0) set_anchor(*update_);
}

void CounterClock::narrow_period() noexcept {
  if (updates_from_anchor_ < 1) return;
  const Range seen{(update_->low - anchor_.high) / updates_from_anchor_,
                   (update_->high - anchor_.low) / updates_from_anchor_};
  Range both{std::max(seen.low, period_->low), std::min(seen.high, period_->high)};
  const double drift_ns = kDrift * period_->midpoint();
  if (both.low > both.high + 2 * drift_ns) {
    slip();
    return;
  }
  if (both.width() < 2 * drift_ns) both = {both.midpoint() - drift_ns, both.midpoint() + drift_ns};
  period_ = both;
}

bool CounterClock::is_locked() const {
  return period_ && update_ && update_->width() < period_->low / 2 &&
         period_->width() / 2 <= kFirstPeriodTolerance * period_->midpoint();
}

// Under load the power values of a GPU sometimes update late; a clock with slips therefore shares no period.
std::optional<UpdatePeriod> CounterClock::shared_period() const {
  if (!is_locked() || irregular_updates_ > 0 || period_uncertainty_ns() > kSharedPeriodTolerance * period_ns())
    return std::nullopt;
  return UpdatePeriod{period_ns(), period_uncertainty_ns() + kPeriodAgreement * period_ns()};
}

std::int64_t CounterClock::half_width_ns() const {
  JOULEMAP_CHECK(is_locked(), "the half width of a CounterClock that is not locked");
  return static_cast<std::int64_t>(update_->width() / 2 + jitter_ns_);
}

UpdateInterval CounterClock::update_at(double updates) const {
  const Range update = after_updates(updates);
  return {origin_ns_ + static_cast<std::int64_t>(std::floor(update.low - jitter_ns_)),
          origin_ns_ + static_cast<std::int64_t>(std::ceil(update.high + jitter_ns_))};
}

double CounterClock::first_update_index_after(std::int64_t time_ns) const {
  JOULEMAP_CHECK(is_locked(), "a step of a CounterClock that is not locked");
  // latest_ns grows linearly before and after update_, so rounding is off by one update at most. A search from update_
  // would not end: in a damaged recording, time_ns may be years away.
  const double ahead_ns = static_cast<double>(time_ns - origin_ns_) - jitter_ns_ - update_->high;
  double updates = std::floor(ahead_ns / (ahead_ns >= 0 ? period_->high : period_->low));
  if (update_at(updates).latest_ns > time_ns) --updates;
  if (update_at(updates).latest_ns <= time_ns) ++updates;
  return updates;
}

UpdateInterval CounterClock::next_update_after(std::int64_t time_ns) const {
  return update_at(first_update_index_after(time_ns));
}

UpdateInterval CounterClock::last_update_before(std::int64_t time_ns) const {
  return update_at(first_update_index_after(time_ns) - 1);
}

}  // namespace joulemap
