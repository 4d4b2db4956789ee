// SPDX-License-Identifier: Apache-2.0
#include "energy/channel_behaviour.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/median.h"

namespace joulemap {
namespace {

constexpr std::size_t kMinUpdateIntervals = 2;
// Updates count as regular up to this fraction of slips (updates outside their expected interval) among the changes.
constexpr double kMaxSlipFraction = 0.05;

}  // namespace

ChannelBehaviour::ChannelBehaviour(const Channel& channel)
    : channel_(channel),
      accumulator_(channel),
      update_clock_(channel.kind == ChannelKind::counter ? UpdateTimeEstimator::EqualValueMeaning::no_update
                                                         : UpdateTimeEstimator::EqualValueMeaning::inconclusive) {}

void ChannelBehaviour::observe(const Reading& reading) {
  if (reading.code != ReadCode::ok) return;
  read_durations_s_.push_back(seconds(reading.after_ns - reading.before_ns));
  total_read_duration_s_ += read_durations_s_.back();
  if (measures_energy_or_power(channel_)) accumulator_.add(reading);
  update_clock_.observe(reading.before_ns, reading.after_ns, reading.raw);
  if (last_reading_ && last_reading_->raw != reading.raw) {
    ++change_count_;
    if (last_change_ns_) update_intervals_s_.push_back(seconds(reading.time_ns() - *last_change_ns_));
    last_change_ns_ = reading.time_ns();
  }
  last_reading_ = reading;
}

std::optional<ChannelBehaviour::UpdateTiming> ChannelBehaviour::update_timing() const {
  if (update_intervals_s_.size() < kMinUpdateIntervals) return std::nullopt;
  const bool is_regular = update_clock_.is_locked() && static_cast<double>(update_clock_.irregular_update_count()) <=
                                                           kMaxSlipFraction * static_cast<double>(change_count_);
  if (is_regular) {
    constexpr auto kNsPerSecond = static_cast<double>(kNanosecondsPerSecond);
    return UpdateTiming{update_clock_.period_ns() / kNsPerSecond, update_clock_.period_uncertainty_ns() / kNsPerSecond,
                        true};
  }
  const double period_s = median_or(update_intervals_s_, 0.0);
  std::vector<double> deviations;
  for (const double interval_s : update_intervals_s_) deviations.push_back(std::abs(interval_s - period_s));
  return UpdateTiming{period_s, kMadToStandardDeviation * median_or(std::move(deviations), 0.0), false};
}

std::optional<UpdateInterval> ChannelBehaviour::update_before(std::int64_t time_ns) const {
  const std::optional<UpdateTiming> known_timing = update_timing();
  if (!known_timing || !known_timing->is_regular) return std::nullopt;
  return update_clock_.last_update_before(time_ns);
}

std::optional<double> ChannelBehaviour::median_read_duration_s() const {
  if (read_durations_s_.empty()) return std::nullopt;
  return median_or(read_durations_s_, 0.0);
}

std::optional<double> ChannelBehaviour::mean_power_w() const {
  const EnergyTally& tally = accumulator_.tally();
  const double observed_s = seconds(tally.last_ns - tally.first_ns - tally.unknown_energy_ns);
  if (!measures_energy_or_power(channel_) || tally.valid_reading_count < 2 || observed_s <= 0) return std::nullopt;
  // A counter that never changed may be broken: do not report 0 W.
  if (channel_.kind == ChannelKind::counter && tally.update_count == 0) return std::nullopt;
  return tally.joules / observed_s;
}

}  // namespace joulemap
