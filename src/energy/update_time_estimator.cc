// SPDX-License-Identifier: Apache-2.0
#include "energy/update_time_estimator.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace joulemap {
namespace {

// CLOCK_MONOTONIC drifts against the device by up to some 1e-5, and not evenly (NTP slews it).
constexpr double kMaxClockDrift = 2e-5;

// Relative half width up to which a first period estimate is accepted: it identifies updates several periods ahead.
constexpr double kMaxFirstPeriodError = 0.15;
constexpr double kMinUpdatePeriod_ns = 1e6;

// A slip (an update outside its expected interval) adds this to recent_slip_count_, an update that fits subtracts 1: no
// valid period has 20 % slips.
constexpr int kSlipWeight = 4;
constexpr int kSlipsUntilPeriodReset = 3;
constexpr std::uint64_t kSlipsUntilLatchReset = 3;

// The period is computed over at most this many updates. Over more, drift exceeds the uncertainty of the result.
constexpr double kMaxUpdatesFromAnchor = 1024;

constexpr double kMaxSkippedUpdates = 5;

// Values of one firmware are assumed to have the same period, with this relative tolerance (on an H200 they agreed
// within the resolution of 0.02 %). A period is shared only when it is known to kMaxSharedPeriodError.
constexpr double kPeriodDifferenceTolerance = 1e-4;
constexpr double kMaxSharedPeriodError = 0.002;

// Whether a value in [low, high] can be a multiple (two or more) of a value in [period_low, period_high].
bool can_be_period_multiple(double low, double high, double period_low, double period_high) {
  for (double times = 2; times <= kMaxSkippedUpdates; ++times) {
    if (low <= times * period_high && high >= times * period_low) return true;
  }
  return false;
}

}  // namespace

void UpdateTimeEstimator::observe(std::int64_t before_ns, std::int64_t read_end_ns, std::uint64_t raw_value) noexcept {
  const bool assumes_early_latch = irregular_update_count_ < kSlipsUntilLatchReset;
  const std::int64_t after_ns =
      assumes_early_latch ? std::min(read_end_ns, before_ns + max_latch_delay_ns_) : read_end_ns;
  if (!last_read_) {
    origin_ns_ = before_ns;
    last_read_ = RawReading{before_ns, raw_value};
    unchanged_since_ns_ = last_read_end_ns_ = after_ns;
    return;
  }
  const RawReading previous = *last_read_;
  if (before_ns < last_read_end_ns_) return;  // a read that overlaps the previous one is not usable
  last_read_ = RawReading{before_ns, raw_value};
  last_read_end_ns_ = after_ns;
  const auto relative = [this](std::int64_t time_ns) { return static_cast<double>(time_ns - origin_ns_); };
  if (raw_value != previous.raw) {
    unchanged_since_ns_ = after_ns;
    observe_change({relative(previous.before_ns) - max_jitter_ns_, relative(after_ns) + max_jitter_ns_});
    period_at_last_change_ = period_;
  } else if (equal_value_meaning_ == EqualValueMeaning::no_update) {
    observe_unchanged({relative(unchanged_since_ns_) + max_jitter_ns_, relative(before_ns) - max_jitter_ns_});
  }
}

void UpdateTimeEstimator::suggest_period(double period_ns, double tolerance_ns) noexcept {
  const NsInterval suggested_period{period_ns - tolerance_ns, period_ns + tolerance_ns};
  if (period_) {
    const NsInterval common_period{std::max(period_->low, suggested_period.low),
                                   std::min(period_->high, suggested_period.high)};
    const double drift_ns = kMaxClockDrift * period_ns;
    if (common_period.width() >= 2 * drift_ns)
      period_at_last_change_ = period_ = common_period;  // otherwise the two disagree, or the
                                                         // known period is as accurate
    return;
  }
  period_at_last_change_ = period_ = suggested_period;
  // A change that was located to less than a period during the search is a known update.
  if (narrowest_change_interval_ && narrowest_change_interval_->width() < period_->low)
    set_anchor(*narrowest_change_interval_);
  last_change_interval_.reset();
  narrowest_change_interval_.reset();
}

UpdateTimeEstimator::NsInterval UpdateTimeEstimator::update_interval_after(double updates) const {
  if (updates >= 0)
    return {known_update_interval_->low + updates * period_->low,
            known_update_interval_->high + updates * period_->high};
  return {known_update_interval_->low + updates * period_->high, known_update_interval_->high + updates * period_->low};
}

double UpdateTimeEstimator::count_periods_until(double time) const {
  return std::round((time - known_update_interval_->midpoint()) / period_->midpoint());
}

// Consecutive changes are one update period apart, or several if reads missed updates, so a first estimate may be too
// long. A later change that arrives too early counts as an irregular update (slip); several slips restart the search
// for the period.
void UpdateTimeEstimator::search_period(NsInterval moments) noexcept {
  const std::optional<NsInterval> previous = last_change_interval_;
  last_change_interval_ = moments;
  if (!narrowest_change_interval_ || moments.width() <= narrowest_change_interval_->width())
    narrowest_change_interval_ = moments;
  if (!previous) return;
  const NsInterval period_estimate{moments.low - previous->high, moments.high - previous->low};
  if (period_estimate.low < kMinUpdatePeriod_ns ||
      period_estimate.width() / 2 > kMaxFirstPeriodError * period_estimate.midpoint())
    return;
  NsInterval consistent_period = period_estimate;
  if (equal_value_meaning_ == EqualValueMeaning::inconclusive) {
    if (!candidate_period_) {
      candidate_period_ = period_estimate;
      return;
    }
    consistent_period = {std::max(period_estimate.low, candidate_period_->low),
                         std::min(period_estimate.high, candidate_period_->high)};
    if (consistent_period.empty()) {
      // An interval that is a multiple of the candidate contains updates that repeated a value. Otherwise one of the
      // two intervals is disturbed, or the candidate contains such updates: start again from the new interval.
      if (!can_be_period_multiple(period_estimate.low, period_estimate.high, candidate_period_->low,
                                  candidate_period_->high))
        candidate_period_ = period_estimate;
      return;
    }
  }
  period_ = consistent_period;
  candidate_period_.reset();
  last_change_interval_.reset();
  narrowest_change_interval_.reset();
  set_anchor(moments);
}

void UpdateTimeEstimator::set_anchor(NsInterval update) noexcept {
  known_update_interval_ = update;
  anchor_update_interval_ = update;
  update_count_from_anchor_ = 0;
}

void UpdateTimeEstimator::handle_update_slip() noexcept {
  ++irregular_update_count_;
  known_update_interval_.reset();
  period_ = period_at_last_change_;  // unchanged values since the last change have narrowed the period wrongly
  // Several slips show that reads do not return the value at their start. What was derived from that is wrong, too.
  const bool resets_latch =
      max_latch_delay_ns_ < kUnboundedLatchDelay_ns && irregular_update_count_ == kSlipsUntilLatchReset;
  recent_slip_count_ += kSlipWeight;
  if (recent_slip_count_ < kSlipWeight * kSlipsUntilPeriodReset && !resets_latch) return;
  recent_slip_count_ = 0;
  period_.reset();
}

void UpdateTimeEstimator::observe_change(NsInterval moments) noexcept {
  if (!period_) {
    search_period(moments);
    return;
  }
  if (moments.width() >= period_->low) return;  // such a long interval always contains an update
  if (!known_update_interval_) {
    set_anchor(moments);
    return;
  }
  const double nearest_update = count_periods_until(moments.midpoint());
  if (update_interval_after(nearest_update).width() >=
      period_->low) {  // the known update is too old to identify this one
    set_anchor(moments);
    return;
  }
  int candidates = 0;
  double updates = 0;
  NsInterval overlap;
  for (double n = nearest_update - 1; n <= nearest_update + 1; ++n) {
    const NsInterval update = update_interval_after(n);
    const NsInterval common_interval{std::max(update.low, moments.low), std::min(update.high, moments.high)};
    if (common_interval.empty()) continue;
    ++candidates;
    updates = n;
    overlap = common_interval;
  }
  if (candidates == 0) {
    handle_update_slip();
    if (period_) set_anchor(moments);
  } else if (candidates == 1) {
    narrow_known_update(updates, overlap);
  }
}

void UpdateTimeEstimator::observe_unchanged(NsInterval moments) noexcept {
  if (!period_ || !known_update_interval_ || moments.empty()) return;
  if (moments.width() >= period_->high) {
    handle_update_slip();
    return;
  }
  // A span without an update may cut off the end of one update's interval and the start of the next one's.
  const double first_update = count_periods_until(moments.low) - 1;
  const double last_update = count_periods_until(moments.high) + 1;
  double known_update_shift = 0;
  for (double n = first_update; n <= last_update; ++n) {
    NsInterval update = update_interval_after(n - known_update_shift);
    if (moments.low <= update.low && moments.high >= update.high) {
      handle_update_slip();
      return;
    }
    const bool overlaps_update_begin = moments.low <= update.low && moments.high > update.low;
    const bool overlaps_update_end = moments.high >= update.high && moments.low < update.high;
    if (!overlaps_update_begin && !overlaps_update_end) continue;
    if (overlaps_update_begin) update.low = moments.high;
    if (overlaps_update_end) update.high = moments.low;
    narrow_known_update(n - known_update_shift, update);
    if (!period_ || !known_update_interval_) return;
    known_update_shift = n;
  }
}

void UpdateTimeEstimator::narrow_known_update(double updates, NsInterval update) noexcept {
  known_update_interval_ = update;
  update_count_from_anchor_ += updates;
  if (recent_slip_count_ > 0) --recent_slip_count_;
  narrow_period();
  if (!known_update_interval_) return;
  const bool is_anchor_imprecise = anchor_update_interval_.width() > 2 * known_update_interval_->width();
  if (is_anchor_imprecise || update_count_from_anchor_ >= kMaxUpdatesFromAnchor || update_count_from_anchor_ < 0)
    set_anchor(*known_update_interval_);
}

void UpdateTimeEstimator::narrow_period() noexcept {
  if (update_count_from_anchor_ < 1) return;
  const NsInterval observed_period{
      (known_update_interval_->low - anchor_update_interval_.high) / update_count_from_anchor_,
      (known_update_interval_->high - anchor_update_interval_.low) / update_count_from_anchor_};
  NsInterval common_period{std::max(observed_period.low, period_->low), std::min(observed_period.high, period_->high)};
  const double drift_ns = kMaxClockDrift * period_->midpoint();
  if (common_period.low > common_period.high + 2 * drift_ns) {
    handle_update_slip();
    return;
  }
  if (common_period.width() < 2 * drift_ns)
    common_period = {common_period.midpoint() - drift_ns, common_period.midpoint() + drift_ns};
  period_ = common_period;
}

bool UpdateTimeEstimator::is_locked() const {
  return period_ && known_update_interval_ && known_update_interval_->width() < period_->low / 2 &&
         period_->width() / 2 <= kMaxFirstPeriodError * period_->midpoint();
}

// Under load the power values of a GPU sometimes update late; a clock with slips therefore shares no period.
std::optional<UpdatePeriod> UpdateTimeEstimator::shareable_period() const {
  if (!is_locked() || irregular_update_count_ > 0 || period_uncertainty_ns() > kMaxSharedPeriodError * period_ns())
    return std::nullopt;
  return UpdatePeriod{period_ns(), period_uncertainty_ns() + kPeriodDifferenceTolerance * period_ns()};
}

std::int64_t UpdateTimeEstimator::known_update_half_width_ns() const {
  JOULEMAP_CHECK(is_locked(), "the half width of an UpdateTimeEstimator that is not locked");
  return static_cast<std::int64_t>(known_update_interval_->width() / 2 + max_jitter_ns_);
}

UpdateInterval UpdateTimeEstimator::interval_of_update_index(double updates) const {
  const NsInterval update = update_interval_after(updates);
  return {origin_ns_ + static_cast<std::int64_t>(std::floor(update.low - max_jitter_ns_)),
          origin_ns_ + static_cast<std::int64_t>(std::ceil(update.high + max_jitter_ns_))};
}

double UpdateTimeEstimator::first_update_index_after(std::int64_t time_ns) const {
  JOULEMAP_CHECK(is_locked(), "a step of an UpdateTimeEstimator that is not locked");
  // latest_ns grows linearly before and after known_update_interval_, so rounding is off by one update at most. A
  // search from known_update_interval_ would not end: in a damaged recording, time_ns may be years away.
  const double ahead_ns = static_cast<double>(time_ns - origin_ns_) - max_jitter_ns_ - known_update_interval_->high;
  double updates = std::floor(ahead_ns / (ahead_ns >= 0 ? period_->high : period_->low));
  if (interval_of_update_index(updates).latest_ns > time_ns) --updates;
  if (interval_of_update_index(updates).latest_ns <= time_ns) ++updates;
  return updates;
}

UpdateInterval UpdateTimeEstimator::next_update_after(std::int64_t time_ns) const {
  return interval_of_update_index(first_update_index_after(time_ns));
}

UpdateInterval UpdateTimeEstimator::last_update_before(std::int64_t time_ns) const {
  return interval_of_update_index(first_update_index_after(time_ns) - 1);
}

}  // namespace joulemap
