// SPDX-License-Identifier: Apache-2.0
//
// A GPU's sensor values as observations of a regression: the energy between counter updates, or the power history that
// the device stores every few milliseconds. Also estimates the sensor lag from the observations: the lag (and, for a
// gauge, the time constant) with the smallest residual. Pure; ns of CLOCK_MONOTONIC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attribution/gpu/interval_observations.h"
#include "attribution/gpu/kernel_timeline.h"
#include "attribution/gpu/sensor_model.h"
#include "attribution/ledger/time_curve.h"

namespace joulemap::attribution {

// In order of time.
struct PowerEvidence {
  std::span<const EnergyPoint> steps;
  std::span<const PowerPoint> history = {};
  std::span<const TimeSpan> probing = {};  // when modules were replayed to separate their powers
  SensorModel known = {};                  // from a calibration
  bool held_back = false;                  // clocks were lowered at times, by a power or thermal limit
};

// The part of the evidence that is usable as observations: counter updates or history, whichever gives more, while
// kernels were recorded. The timeline must outlive this object.
class UsefulEvidence {
 public:
  UsefulEvidence(const KernelTimeline& timeline, const PowerEvidence& evidence);

  bool is_gauge() const { return !history_.empty(); }
  std::size_t rows() const { return is_gauge() ? history_.size() : steps_.size() - (steps_.empty() ? 0 : 1); }
  IntervalObservations rows_at(const Sensing& sensing) const;
  // Time span of an observation, by the sensor's timestamps.
  TimeSpan span_of(std::size_t row) const;
  // A subset that is large enough to estimate the lag.
  UsefulEvidence some() const;

 private:
  const KernelTimeline* timeline_;
  std::vector<EnergyPoint> steps_;
  std::vector<PowerPoint> history_;
  double period_s_ = 0;  // of the history
};

// Another lag or time constant that fits nearly as well.
struct AlternativeSensorModel {
  Sensing sensing;
  double weight = 1;  // relative to the best: 1
  statistics::GramSums sums{};
  std::vector<double> watts{};  // all unknowns, without grouping
};

struct FoundSensorModel {
  Sensing best;
  std::int64_t low_ns = 0;  // 90 % interval of the lag
  std::int64_t high_ns = 0;
  bool known = false;  // false: no lag fits better than another
  // Alternative sensor models for the same observations, the best first; empty where the sensor is well known. With
  // identical repeating steps, another lag only permutes the powers cyclically, and another time constant scales their
  // spread.
  std::vector<AlternativeSensorModel> others = {};
};
// Where no lag fits better than another: the lag of the calibration, or the default.
FoundSensorModel find_sensor_model(const UsefulEvidence& evidence, const SensorModel& known = {});
// The exponent by which slowed-down kernels use less power (power ~ slowdown^-pace), with the smallest residual; 0
// where none fits better than 0.
double find_slowdown_exponent(const UsefulEvidence& evidence, const Sensing& sensing);

}  // namespace joulemap::attribution
