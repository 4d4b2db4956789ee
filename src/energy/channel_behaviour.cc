// SPDX-License-Identifier: Apache-2.0
#include "energy/channel_behaviour.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/median.h"

namespace joulemap {
namespace {

constexpr std::size_t kMinIntervals = 2;
// Standard deviation over median absolute deviation of a normal distribution.
constexpr double kSdPerMad = 1.4826;
// Updates count as regular up to this fraction of slips (updates outside their expected interval) among the changes.
constexpr double kMaxSlipShare = 0.05;

}  // namespace

ChannelBehaviour::ChannelBehaviour(const Channel& channel)
    : channel_(channel),
      energy_(channel),
      clock_(channel.kind == ChannelKind::counter ? CounterClock::EqualValues::mean_no_update
                                                  : CounterClock::EqualValues::are_inconclusive) {}

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

std::optional<ChannelBehaviour::UpdateTiming> ChannelBehaviour::update_timing() const {
  if (intervals_s_.size() < kMinIntervals) return std::nullopt;
  const bool is_regular = clock_.is_locked() && static_cast<double>(clock_.irregular_updates()) <=
                                                    kMaxSlipShare * static_cast<double>(changes_);
  if (is_regular) {
    constexpr auto kSecond = static_cast<double>(kNanosecondsPerSecond);
    return UpdateTiming{clock_.period_ns() / kSecond, clock_.period_uncertainty_ns() / kSecond, true};
  }
  const double period_s = median_or(intervals_s_, 0.0);
  std::vector<double> deviations;
  for (const double interval_s : intervals_s_) deviations.push_back(std::abs(interval_s - period_s));
  return UpdateTiming{period_s, kSdPerMad * median_or(std::move(deviations), 0.0), false};
}

std::optional<UpdateInterval> ChannelBehaviour::update_before(std::int64_t time_ns) const {
  const std::optional<UpdateTiming> known = update_timing();
  if (!known || !known->is_regular) return std::nullopt;
  return clock_.last_update_before(time_ns);
}

std::optional<double> ChannelBehaviour::median_read_s() const {
  if (reads_s_.empty()) return std::nullopt;
  return median_or(reads_s_, 0.0);
}

std::optional<double> ChannelBehaviour::mean_w() const {
  const EnergyTally& tally = energy_.tally();
  const double seen_s = seconds(tally.last_ns - tally.first_ns - tally.gap_ns);
  if (!measures_energy(channel_) || tally.good_readings < 2 || seen_s <= 0) return std::nullopt;
  // A counter that never changed may be broken: do not report 0 W.
  if (channel_.kind == ChannelKind::counter && tally.updates == 0) return std::nullopt;
  return tally.joules / seen_s;
}

}  // namespace joulemap
