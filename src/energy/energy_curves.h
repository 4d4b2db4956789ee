// SPDX-License-Identifier: Apache-2.0
//
// EnergyCurves: the curves of all channels of a machine that measure energy or power, from the samples of all its channels.
// A device's counter is helped by what else its device reports: the history of its power, and the period of a power that the
// same firmware updates and that is read often. Samples of one channel come in order of time; channels may lag one another
// by up to two seconds (a recording keeps them one after another), and the curves are the same. One owner, one thread.
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
  // `channels`: what Sample::channel counts in.
  explicit EnergyCurves(std::span<const Channel> channels, EnergyCurve::Keep keep = EnergyCurve::Keep::all);
  // After a measurement of the same channels: takes over what that found out about their refresh.
  EnergyCurves(std::span<const Channel> channels, const EnergyCurves& earlier);

  void observe(const Sample& sample) noexcept;
  void keep_around(std::int64_t time_ns);

  // Nothing for a channel that measures neither energy nor power.
  const EnergyCurve* of(std::size_t channel) const;
  std::span<const EnergyCurve> all() const { return curves_; }

 private:
  // The updates of a device's mean power. Counters are given what was known at the end of an earlier period of time, so that
  // it does not matter which channel comes first.
  struct PowerClock {
    StepClock clock{StepClock::EqualValues::prove_nothing};
    struct Known {
      std::int64_t until = INT64_MIN;  // number of the period of time
      std::optional<StepPeriod> period;
    };
    Known latest;
    Known before;
    std::optional<std::int64_t> origin_ns;  // periods are counted from the first reading on
    std::int64_t now = INT64_MIN;
  };
  void suggest_period(EnergyCurve& curve, std::int64_t time_ns);

  struct Role {
    std::optional<std::size_t> curve;
    std::vector<std::size_t> shaped;  // of a history: the curves of its device's counters
    bool clocks_device = false;
  };
  std::vector<Role> roles_;  // by channel
  std::vector<double> scales_;
  std::vector<EnergyCurve> curves_;
  std::map<std::string, PowerClock, std::less<>> power_clocks_;  // by device
};

}  // namespace joulemap
