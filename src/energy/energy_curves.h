// SPDX-License-Identifier: Apache-2.0
//
// EnergyCurves: the curves of all channels of a machine that measure energy or power, fed with the samples of all its
// channels. Other values of a device refine its counter: the power history, and the period of a frequently read power
// that the same firmware updates. Samples of one channel come in order of time. Channels may lag one another by up to
// two seconds (a recording stores them one after another) without an effect on the curves. One owner, one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "energy/energy_curve.h"
#include "model/sample.h"

namespace joulemap {

class EnergyCurves {
 public:
  EnergyCurves() = default;
  // `channels`: the list that Sample::channel indexes.
  explicit EnergyCurves(std::span<const Channel> channels,
                        EnergyCurve::Retention retention = EnergyCurve::Retention::all);
  // After a measurement of the same channels: reuses the update periods that it found.
  EnergyCurves(std::span<const Channel> channels, const EnergyCurves& earlier);

  void observe(const Sample& sample) noexcept;
  void retain_around(std::int64_t time_ns);

  // Null for a channel that measures neither energy nor power.
  const EnergyCurve* curve_of(std::size_t channel) const;
  std::span<const EnergyCurve> curves() const { return curves_; }

 private:
  // Update clock of a device's mean power. Counters receive what was known at the end of an earlier time slot, so that
  // the result does not depend on which channel comes first.
  struct PowerClock {
    CounterClock clock{CounterClock::EqualValues::are_inconclusive};
    struct KnownPeriod {
      std::int64_t slot = INT64_MIN;  // index of the time slot
      std::optional<UpdatePeriod> period;
    };
    KnownPeriod latest;
    KnownPeriod before;
    std::optional<std::int64_t> origin_ns;  // of slot 0: the first reading
    std::int64_t now = INT64_MIN;
  };
  void suggest_period(EnergyCurve& curve, std::int64_t time_ns);

  struct Role {
    std::optional<std::size_t> curve;
    std::vector<std::size_t> counter_curves;  // of a history: indices of the curves of its device's counters
    bool is_device_clock = false;
  };
  std::vector<Role> roles_;  // by channel
  std::vector<double> scales_;
  std::vector<EnergyCurve> curves_;
  std::map<std::string, PowerClock, std::less<>> power_clocks_;  // by device
};

}  // namespace joulemap
