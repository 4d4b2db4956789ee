// SPDX-License-Identifier: Apache-2.0
#include "energy/channel_behaviour.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/median.h"

namespace joulemap {
namespace {

constexpr std::size_t kFewestIntervals = 2;
// Standard deviation over median absolute deviation of a normal distribution.
constexpr double kDeviationOfMedian = 1.4826;
// With a larger fraction of slips among the changes, the updates are not regular.
constexpr double kMostSlips = 0.05;

}  // namespace

ChannelBehaviour::ChannelBehaviour(const Channel& channel)
    : channel_(channel),
      energy_(channel),
      clock_(channel.kind == ChannelKind::counter ? CounterClock::EqualValues::mean_no_step
                                                  : CounterClock::EqualValues::prove_nothing) {}

void ChannelBehaviour::observe(const Reading& reading) {
  if (reading.code != ReadCode::ok) return;
  reads_s_.push_back(seconds(reading.after_ns - reading.before_ns));
  total_read_s_ += reads_s_.back();
  if (measures_energy(channel_)) energy_.add(reading);
  clock_.observe(reading.before_ns, reading.after_ns, reading.raw);
  if (last_ && last_->raw != reading.raw) {
    ++changes_;
    if (last_change_ns_) intervals_s_.push_back(seconds(reading.time_ns() - *last_change_ns_));
    last_change_ns_ = reading.time_ns();
  }
  last_ = reading;
}

std::optional<ChannelBehaviour::Refresh> ChannelBehaviour::refresh() const {
  if (intervals_s_.size() < kFewestIntervals) return std::nullopt;
  const bool regular =
      clock_.is_locked() && static_cast<double>(clock_.slips()) <= kMostSlips * static_cast<double>(changes_);
  if (regular) {
    constexpr auto kSecond = static_cast<double>(kNanosecondsPerSecond);
    return Refresh{clock_.period_ns() / kSecond, clock_.period_uncertainty_ns() / kSecond, true};
  }
  const double period_s = median_or(intervals_s_, 0.0);
  std::vector<double> deviations;
  for (const double interval_s : intervals_s_) deviations.push_back(std::abs(interval_s - period_s));
  return Refresh{period_s, kDeviationOfMedian * median_or(std::move(deviations), 0.0), false};
}

std::optional<StepInterval> ChannelBehaviour::step_before(std::int64_t time_ns) const {
  const std::optional<Refresh> known = refresh();
  if (!known || !known->regular) return std::nullopt;
  return clock_.last_step_before(time_ns);
}

std::optional<double> ChannelBehaviour::median_read_s() const {
  if (reads_s_.empty()) return std::nullopt;
  return median_or(reads_s_, 0.0);
}

std::optional<double> ChannelBehaviour::mean_w() const {
  const EnergyTally& tally = energy_.tally();
  const double seen_s = seconds(tally.last_ns - tally.first_ns - tally.gap_ns);
  if (!measures_energy(channel_) || tally.good < 2 || seen_s <= 0) return std::nullopt;
  // A counter that never changed may be broken: do not report 0 W.
  if (channel_.kind == ChannelKind::counter && tally.steps == 0) return std::nullopt;
  return tally.joules / seen_s;
}

}  // namespace joulemap
