// SPDX-License-Identifier: Apache-2.0
//
// ChannelBehaviour: watches the readings of one channel and tells how the channel behaves: how often its value is renewed,
// when, how long a read takes, what it shows on average. Fed in order of time; memory grows with the readings, for it is
// meant for seconds. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "energy/energy_accumulator.h"
#include "energy/step_clock.h"
#include "model/channel.h"
#include "model/reading.h"

namespace joulemap {

class ChannelBehaviour {
 public:
  explicit ChannelBehaviour(const Channel& channel);

  void observe(const Reading& reading);

  struct Refresh {
    double period_s = 0;
    double spread_s = 0;  // regular: what is not known of the period; else how far the intervals lie apart
    bool regular = false;
  };
  // Nothing when it was seen to change less than three times.
  std::optional<Refresh> refresh() const;

  // A step whose moment is known well: where the phase of a regular channel is taken from.
  std::optional<StepInterval> step_before(std::int64_t time_ns) const;

  std::optional<double> median_read_s() const;
  double total_read_s() const { return total_read_s_; }
  std::uint64_t reads() const { return reads_s_.size(); }
  // Power: of a counter its rise over the time, of a power gauge its mean.
  std::optional<double> mean_w() const;

 private:
  Channel channel_;
  EnergyAccumulator energy_;
  StepClock clock_;
  std::vector<double> reads_s_;
  std::vector<double> intervals_s_;  // between changes whose moments are known well
  double total_read_s_ = 0;
  std::optional<Reading> last_;
  std::optional<std::int64_t> last_change_ns_;
  std::uint64_t changes_ = 0;
};

}  // namespace joulemap
