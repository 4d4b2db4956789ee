// SPDX-License-Identifier: Apache-2.0
//
// EnergyCurves: the curves of all channels of a machine that measure energy or power, fed with the samples of all its
// channels. Other values of a device refine the curve of its counter: its power history, and the update period of a
// power that is read more often and that the same firmware updates. Samples of one channel come in order of time. The
// samples of one channel may come up to two seconds after those of another (a recording stores them in blocks by
// channel) without an effect on the curves. One owner, one thread.
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
  // Curves for a new measurement, which reuse the update periods found by `earlier_curves`, a measurement of the same
  // channels.
  EnergyCurves(std::span<const Channel> channels, const EnergyCurves& earlier_curves);

  void observe(const Sample& sample) noexcept;
  void retain_points_around(std::int64_t time_ns);

  // Null for a channel that measures neither energy nor power.
  const EnergyCurve* curve_of_channel(std::size_t channel) const;
  std::span<const EnergyCurve> curves() const { return curves_; }

 private:
  // Update clock of a device's power gauge. Counters receive the period that was known at the end of an earlier time
  // slot, so that the result does not depend on which channel's samples come first.
  struct PowerUpdateTiming {
    UpdateTimeEstimator clock{UpdateTimeEstimator::EqualValueMeaning::inconclusive};
    struct KnownUpdatePeriod {
      std::int64_t slot_index = INT64_MIN;  // index of the time slot
      std::optional<UpdatePeriod> period;
    };
    KnownUpdatePeriod period_of_latest_slot;
    KnownUpdatePeriod period_of_previous_slot;
    std::optional<std::int64_t> origin_ns;  // begin of slot 0: the first reading
    std::int64_t current_slot = INT64_MIN;
  };
  void suggest_period(EnergyCurve& curve, std::int64_t time_ns);

  struct ChannelRole {
    std::optional<std::size_t> curve_index;
    std::vector<std::size_t>
        counter_curve_indices;  // of a power history: indices of the curves of its device's counters
    bool is_device_update_clock = false;
  };
  std::vector<ChannelRole> channel_roles_;  // by channel
  std::vector<double> raw_scales_;
  std::vector<EnergyCurve> curves_;
  std::map<std::string, PowerUpdateTiming, std::less<>> power_update_timings_;  // by device
};

}  // namespace joulemap
