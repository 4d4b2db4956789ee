// SPDX-License-Identifier: Apache-2.0
#include "energy/energy_curves.h"

#include "base/clock.h"

namespace joulemap {
namespace {

// A power gauge that averages over at least this time changes at nearly every update, whether the device is idle or
// not.
constexpr double kMinLongAveraging_s = 0.5;
// The update period of a device's power is passed to its counters at this interval, and with this delay, which exceeds
// the time by which the samples of one channel may follow those of another.
constexpr std::int64_t kPeriodSharingInterval_ns = 4 * kNanosecondsPerSecond;
constexpr std::int64_t kPeriodSharingDelay_ns = 2 * kNanosecondsPerSecond;

bool is_device_power_gauge(const Channel& channel) {
  return channel.kind == ChannelKind::gauge && channel.quantity == Quantity::power && !channel.device.empty() &&
         channel.refresh_s >= kMinSlowUpdatePeriod_s && channel.averaging_time_s >= kMinLongAveraging_s;
}

}  // namespace

EnergyCurves::EnergyCurves(std::span<const Channel> channels, EnergyCurve::Retention retention) {
  for (const Channel& channel : channels) {
    ChannelRole& role = channel_roles_.emplace_back();
    raw_scales_.push_back(channel.scale);
    role.is_device_update_clock = is_device_power_gauge(channel);
    if (role.is_device_update_clock) power_update_timings_.try_emplace(channel.device);
    if (!measures_energy_or_power(channel)) continue;
    role.curve_index = curves_.size();
    curves_.emplace_back(channel, retention);
  }
  for (std::size_t i = 0; i < channels.size(); ++i) {
    if (channels[i].quantity != Quantity::power_history || channels[i].device.empty()) continue;
    for (std::size_t curve = 0; curve < curves_.size(); ++curve) {
      const Channel& counter = curves_[curve].channel();
      if (has_counter_updates(counter) && counter.device == channels[i].device)
        channel_roles_[i].counter_curve_indices.push_back(curve);
    }
  }
}

EnergyCurves::EnergyCurves(std::span<const Channel> channels, const EnergyCurves& earlier_curves)
    : EnergyCurves(channels) {
  for (std::size_t i = 0; i < curves_.size() && i < earlier_curves.curves_.size(); ++i) {
    const EnergyCurve& earlier_curve = earlier_curves.curves_[i];
    if (!earlier_curve.is_refresh_known()) continue;
    curves_[i] = EnergyCurve(earlier_curve.channel(), EnergyCurve::Retention::all, earlier_curve.refresh_ns());
  }
}

const EnergyCurve* EnergyCurves::curve_of_channel(std::size_t channel) const {
  if (channel >= channel_roles_.size() || !channel_roles_[channel].curve_index) return nullptr;
  return &curves_[*channel_roles_[channel].curve_index];
}

void EnergyCurves::retain_points_around(std::int64_t time_ns) {
  for (EnergyCurve& curve : curves_) curve.retain_points_around(time_ns);
}

void EnergyCurves::observe(const Sample& sample) noexcept {
  if (sample.channel >= channel_roles_.size()) return;  // the reader of a damaged recording has reported the sample
  const ChannelRole& role = channel_roles_[sample.channel];
  const Reading& reading = sample.reading;
  const bool is_valid_reading = reading.code == ReadCode::ok;
  if (is_valid_reading) {
    const PowerPoint point{reading.time_ns(), static_cast<double>(reading.raw) * raw_scales_[sample.channel]};
    for (const std::size_t curve : role.counter_curve_indices) curves_[curve].add_power_history(point);
  }
  if (!role.curve_index) return;
  EnergyCurve& curve = curves_[*role.curve_index];
  if (role.is_device_update_clock && is_valid_reading) {
    PowerUpdateTiming& device = power_update_timings_.find(curve.channel().device)->second;
    if (!device.origin_ns) device.origin_ns = reading.time_ns();
    const std::int64_t current_slot = (reading.time_ns() - *device.origin_ns) / kPeriodSharingInterval_ns;
    if (current_slot > device.current_slot) {
      device.period_of_previous_slot = device.period_of_latest_slot;
      device.period_of_latest_slot = {current_slot, device.clock.shareable_period()};
      device.current_slot = current_slot;
    }
    device.clock.observe(reading.before_ns, reading.after_ns, reading.raw);
  }
  if (is_valid_reading && curve.clock() != nullptr) suggest_period(curve, reading.time_ns());
  curve.observe(reading);
}

void EnergyCurves::suggest_period(EnergyCurve& curve, std::int64_t time_ns) {
  const auto device = power_update_timings_.find(curve.channel().device);
  if (device == power_update_timings_.end() || !device->second.origin_ns) return;
  const std::int64_t latest_usable_slot =
      (time_ns - *device->second.origin_ns - kPeriodSharingDelay_ns) / kPeriodSharingInterval_ns;
  const PowerUpdateTiming::KnownUpdatePeriod& latest_period = device->second.period_of_latest_slot;
  const PowerUpdateTiming::KnownUpdatePeriod& known =
      latest_period.slot_index <= latest_usable_slot ? latest_period : device->second.period_of_previous_slot;
  if (known.period) curve.suggest_period(known.period->period_ns, known.period->tolerance_ns);
}

}  // namespace joulemap
