// SPDX-License-Identifier: Apache-2.0
#include "energy/energy_curves.h"

#include "base/clock.h"

namespace joulemap {
namespace {

// A power gauge that averages over at least this time changes at nearly every update, whether the device is idle or
// not.
constexpr double kLongMean_s = 0.5;
// The update period of a device's power is passed to its counters at this interval, and with this delay, which exceeds
// the time by which the samples of one channel may follow those of another.
constexpr std::int64_t kPeriodSharingInterval_ns = 4 * kNanosecondsPerSecond;
constexpr std::int64_t kPeriodSharingDelay_ns = 2 * kNanosecondsPerSecond;

bool is_clock_of_device(const Channel& channel) {
  return channel.kind == ChannelKind::gauge && channel.quantity == Quantity::power && !channel.device.empty() &&
         channel.refresh_s >= kSlowRefresh_s && channel.averaging_time_s >= kLongMean_s;
}

}  // namespace

EnergyCurves::EnergyCurves(std::span<const Channel> channels, EnergyCurve::Retention retention) {
  for (const Channel& channel : channels) {
    Role& role = roles_.emplace_back();
    scales_.push_back(channel.scale);
    role.is_device_clock = is_clock_of_device(channel);
    if (role.is_device_clock) power_clocks_.try_emplace(channel.device);
    if (!measures_energy(channel)) continue;
    role.curve = curves_.size();
    curves_.emplace_back(channel, retention);
  }
  for (std::size_t i = 0; i < channels.size(); ++i) {
    if (channels[i].quantity != Quantity::power_history || channels[i].device.empty()) continue;
    for (std::size_t curve = 0; curve < curves_.size(); ++curve) {
      const Channel& counter = curves_[curve].channel();
      if (has_counter_updates(counter) && counter.device == channels[i].device)
        roles_[i].counter_curves.push_back(curve);
    }
  }
}

EnergyCurves::EnergyCurves(std::span<const Channel> channels, const EnergyCurves& earlier) : EnergyCurves(channels) {
  for (std::size_t i = 0; i < curves_.size() && i < earlier.curves_.size(); ++i) {
    const EnergyCurve& same = earlier.curves_[i];
    if (!same.refresh_is_known()) continue;
    curves_[i] = EnergyCurve(same.channel(), EnergyCurve::Retention::all, same.refresh_ns());
  }
}

const EnergyCurve* EnergyCurves::curve_of(std::size_t channel) const {
  if (channel >= roles_.size() || !roles_[channel].curve) return nullptr;
  return &curves_[*roles_[channel].curve];
}

void EnergyCurves::retain_around(std::int64_t time_ns) {
  for (EnergyCurve& curve : curves_) curve.retain_around(time_ns);
}

void EnergyCurves::observe(const Sample& sample) noexcept {
  if (sample.channel >= roles_.size()) return;  // the reader of a damaged recording has reported the sample
  const Role& role = roles_[sample.channel];
  const Reading& reading = sample.reading;
  const bool is_good = reading.code == ReadCode::ok;
  if (is_good) {
    const PowerPoint point{reading.time_ns(), static_cast<double>(reading.raw) * scales_[sample.channel]};
    for (const std::size_t curve : role.counter_curves) curves_[curve].observe_history(point);
  }
  if (!role.curve) return;
  EnergyCurve& curve = curves_[*role.curve];
  if (role.is_device_clock && is_good) {
    PowerClock& device = power_clocks_.find(curve.channel().device)->second;
    if (!device.origin_ns) device.origin_ns = reading.time_ns();
    const std::int64_t now = (reading.time_ns() - *device.origin_ns) / kPeriodSharingInterval_ns;
    if (now > device.now) {
      device.before = device.latest;
      device.latest = {now, device.clock.shared_period()};
      device.now = now;
    }
    device.clock.observe(reading.before_ns, reading.after_ns, reading.raw);
  }
  if (is_good && curve.clock() != nullptr) suggest_period(curve, reading.time_ns());
  curve.observe(reading);
}

void EnergyCurves::suggest_period(EnergyCurve& curve, std::int64_t time_ns) {
  const auto device = power_clocks_.find(curve.channel().device);
  if (device == power_clocks_.end() || !device->second.origin_ns) return;
  const std::int64_t wanted =
      (time_ns - *device->second.origin_ns - kPeriodSharingDelay_ns) / kPeriodSharingInterval_ns;
  const PowerClock::KnownPeriod& latest = device->second.latest;
  const PowerClock::KnownPeriod& known = latest.slot <= wanted ? latest : device->second.before;
  if (known.period) curve.suggest_period(known.period->period_ns, known.period->tolerance_ns);
}

}  // namespace joulemap
