// SPDX-License-Identifier: Apache-2.0
//
// A GPU's sensor values as observations of a regression: the energy between counter updates, or the power history that
// the device stores about every 20 ms. Also estimates the sensor lag from the observations: the lag (and, for the power
// history, which is a gauge, the time constant) with the smallest residual. Pure; ns of CLOCK_MONOTONIC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "attribution/gpu/interval_observations.h"
#include "attribution/gpu/kernel_timeline.h"
#include "attribution/gpu/sensor_model.h"
#include "attribution/ledger/time_curve.h"

namespace joulemap::attribution {

// Sensor values of one GPU, in order of time, and what else is known about it.
struct PowerEvidence {
  std::span<const EnergyPoint> counter_updates;
  std::span<const PowerPoint> power_history = {};
  std::span<const TimeSpan> probing_spans = {};  // when modules were replayed to separate their powers
  SensorModel calibrated_sensor = {};            // from a calibration
  bool is_throttled = false;                     // clocks were lowered at times, by a power or thermal limit
};

// The part of the evidence that is usable as observations: counter updates or power history, whichever gives more, in
// the time in which kernels were recorded. The timeline must outlive this object.
class UsablePowerEvidence {
 public:
  UsablePowerEvidence(const KernelTimeline& timeline, const PowerEvidence& evidence);

  bool is_from_gauge() const { return !power_history_.empty(); }
  std::size_t observation_count() const {
    return is_from_gauge() ? power_history_.size() : counter_updates_.size() - (counter_updates_.empty() ? 0 : 1);
  }
  IntervalObservations make_observations(const SensorParameters& parameters) const;
  // Time span of an observation, by the sensor's timestamps.
  TimeSpan observation_span(std::size_t row) const;
  // A subset that is large enough to estimate the sensor model, which takes many fits.
  UsablePowerEvidence make_model_search_subset() const;

 private:
  const KernelTimeline* timeline_;
  std::vector<EnergyPoint> counter_updates_;
  std::vector<PowerPoint> power_history_;
  double period_s_ = 0;  // of the history
  std::optional<IdlePower> idle_power_;
};

// Another lag or time constant that fits nearly as well.
struct AlternativeSensorModel {
  SensorParameters parameters;
  double weight = 1;  // likelihood relative to the best model
  statistics::NormalEquations normal_equations{};
  std::vector<double> watts_by_unknown{};  // all unknowns, without grouping
};

struct SensorModelEstimate {
  SensorParameters best_parameters;
  std::int64_t lag_low_ns = 0;  // 90 % interval of the lag
  std::int64_t lag_high_ns = 0;
  bool is_identified = false;  // false: no lag fits better than another
  // Alternative sensor models for the same observations, the best first; empty where the sensor is well known. With
  // identical repeating steps, another lag only permutes the powers cyclically, and another time constant scales their
  // spread.
  std::vector<AlternativeSensorModel> alternatives = {};
};
// Finds the lag and the time constant with the smallest cost. Where no lag fits better than another, returns those of
// the calibration `calibrated_model`, or the defaults.
SensorModelEstimate find_sensor_model(const UsablePowerEvidence& evidence, const SensorModel& calibrated_model = {});
// The exponent by which slowed-down kernels use less power (power ~ slowdown^-exponent), with the smallest residual; 0
// where none fits better than 0.
double find_slowdown_exponent(const UsablePowerEvidence& evidence, const SensorParameters& parameters);

}  // namespace joulemap::attribution
