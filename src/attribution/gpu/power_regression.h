// SPDX-License-Identifier: Apache-2.0
//
// What each class of kernels draws, found from a counter that speaks ten times a second and kernels that last microseconds:
// the energy between two steps of the counter is what each class was busy in that time, times its power, and idle power
// for the rest. Pure: plain data in, plain data out; same input, same bits. Watts, joules, nanoseconds.
//
// - Where the device has kept its power every few milliseconds, that is used instead of the counter's steps: more rows.
// - Sensors lag behind (power_evidence.h). The lag is the one that leaves the least unexplained; where that is flat the
//   one of a calibration or the usual one is taken, and what it might change widens the intervals.
// - Rows that fit badly count less (Huber), as there are late polls and clocks that change.
// - What cannot be told apart shares one power, and is called a share of time (separable_groups.h).
// - Where a kernel library knows the classes, each keeps its own power instead, as far as the data leave it open
//   (library_fit.h).
// - Intervals come from replicates: blocks of rows weighted at random, the lag moved as far as it is not known, the
//   counter's gain, and for shares of time the spread that powers of classes usually have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "attribution/gpu/kernel_timeline.h"
#include "attribution/gpu/library_fit.h"
#include "attribution/gpu/power_evidence.h"
#include "attribution/ledger/time_curve.h"

namespace joulemap::attribution {

inline constexpr std::size_t kReplicates = 400;

struct ClassPower {
  double watts = 0;
  double low_w = 0;  // 90 %
  double high_w = 0;
  double from_data = 0;     // how much of it is data, not belief
  bool regressed = false;   // else its share of time, with those it cannot be told from
  bool probed = false;      // the former, and not without the probing
  bool by_library = false;  // not regressed: what the kernel library knows of it, or of its kind
};

struct PowerFit {
  std::vector<ClassPower> classes;  // the last is idle
  // By class, then by replicate: watts, if the counter is right as a whole; and what it may be wrong by, as a factor.
  std::vector<std::vector<double>> replicates;
  std::vector<double> gains;
  double gain_spread = kUsualGainSpread;
  std::int64_t lag_ns = 0;
  std::int64_t memory_ns = 0;       // of the gauge that was used; 0: the counter was
  double pace = 0;                  // powers are those at full speed, and less by this (kernel_pace.h)
  std::int64_t counter_lag_ns = 0;  // so long before its steps the counter's energy was drawn
  std::int64_t lag_low_ns = 0;
  std::int64_t lag_high_ns = 0;
  bool lag_known = false;
  double residual_j = 0;  // usual size of what is left over in a row
  std::size_t rows = 0;
  std::size_t groups = 0;

  const ClassPower& idle() const { return classes.back(); }
  // What kernels of a class draw that take so many times longer than at full speed.
  double watts_at(std::size_t column, double slowness) const;
  // The energy that is shared out is itself wrong by so much, as a standard deviation and a share.
  void widen_gains(double spread);
};

// Nothing where too little was seen to know its noise, or where it says what cannot be. Points in order of time; the
// timeline is finished. `priors`: by class, idling last, or none at all.
std::optional<PowerFit> fit_powers(const KernelTimeline& timeline, const PowerEvidence& evidence,
                                   std::span<const ClassPrior> priors = {});

// Nothing but what is believed of them: where rows are too few.
PowerFit believed_powers(std::span<const ClassPrior> priors, double gain_spread = kUsualGainSpread);
// Nothing known but that powers of classes spread: all are 1, and replicates differ from it.
PowerFit alike_powers(std::size_t classes, double gain_spread = kUsualGainSpread);

// Between which two of the values the middle `share` of them lies. Of at least one value.
std::pair<double, double> middle_of(std::vector<double> values, double share);

}  // namespace joulemap::attribution
