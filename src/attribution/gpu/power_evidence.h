// SPDX-License-Identifier: Apache-2.0
//
// What a GPU's sensors said, as rows for a regression: the energy between steps of its counter, or the power that it has
// kept every few milliseconds. And how late the sensor is, found from the rows themselves: the lag (and, of a gauge, the
// memory) that leaves the least unexplained. Pure; nanoseconds of CLOCK_MONOTONIC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attribution/gpu/interval_rows.h"
#include "attribution/gpu/kernel_timeline.h"
#include "attribution/gpu/known_sensing.h"
#include "attribution/ledger/time_curve.h"

namespace joulemap::attribution {

// In order of time.
struct PowerEvidence {
  std::span<const EnergyPoint> steps;
  std::span<const PowerPoint> history = {};
  std::span<const TimeSpan> probing = {};  // when modules were replayed to be told apart
  KnownSensing known = {};                 // from a calibration
  bool held_back = false;                  // its clocks were at times, by a power limit or by heat
};

// What of it makes rows: of one of the two, whichever makes more, while kernels were known. The timeline outlives it.
class UsefulEvidence {
 public:
  UsefulEvidence(const KernelTimeline& timeline, const PowerEvidence& evidence);

  bool is_gauge() const { return !history_.empty(); }
  std::size_t rows() const { return is_gauge() ? history_.size() : steps_.size() - (steps_.empty() ? 0 : 1); }
  IntervalRows rows_at(const Sensing& sensing) const;
  // What time a row is about, as the sensor's own clock has it.
  TimeSpan span_of(std::size_t row) const;
  // Enough of it to find the lag by.
  UsefulEvidence some() const;

 private:
  const KernelTimeline* timeline_;
  std::vector<EnergyPoint> steps_;
  std::vector<PowerPoint> history_;
  double period_s_ = 0;  // of the history
};

// Another lag or memory that fits nearly as well.
struct OtherSensing {
  Sensing sensing;
  double weight = 1;  // of the best: 1
  statistics::GramSums sums{};
  std::vector<double> watts{};  // all unknowns by themselves
};

struct FoundSensing {
  Sensing best;
  std::int64_t low_ns = 0;  // between which the lag lies, 90 %
  std::int64_t high_ns = 0;
  bool known = false;  // else no lag fits better than another
  // What the sensor may be as well, of the same rows, the best first; empty where it is known well. Of equal steps that
  // repeat, lags only turn the powers in a circle, and memories stretch them.
  std::vector<OtherSensing> others = {};
};
// Where no lag fits better than another: that of the calibration, or what is usual.
FoundSensing find_sensing(const UsefulEvidence& evidence, const KnownSensing& known = {});
// How much less kernels draw that are slowed down, as a power of their slowness: the one that leaves the least
// unexplained; 0 where none fits better than that.
double find_pace(const UsefulEvidence& evidence, const Sensing& sensing);

}  // namespace joulemap::attribution
