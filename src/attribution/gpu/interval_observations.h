// SPDX-License-Identifier: Apache-2.0
//
// IntervalObservations: the observations of a power regression for one sensor model: the energy of an interval, and the
// time of each kernel class and of idle in it (the last column). Also robust fits of powers to them. Pure; W, J, s.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "attribution/gpu/kernel_timeline.h"
#include "attribution/ledger/time_curve.h"
#include "statistics/nonnegative_least_squares.h"

namespace joulemap::attribution {

// Prior of the powers: one for all kernel classes, one for idle, and the standard deviation of both.
struct PowerPrior {
  double busy_w = 0;
  double idle_w = 0;
  double sd_w = 0;
};

// Sensor model. A value published at t covers time up to t - lag; a gauge is also an exponential average with the time
// constant time_constant_ns. A counter integrates all energy between its updates. `slowdown_exponent` is the exponent
// by which slowed-down kernels use less power (kernel_slowdown.h).
struct SensorParameters {
  std::int64_t lag_ns = 0;
  std::int64_t time_constant_ns = 0;
  double slowdown_exponent = 0;
};

class IntervalObservations {
 public:
  // From the values of a gauge, about `period_s` apart: an observation is the gauge's power over that period.
  IntervalObservations(const KernelTimeline& timeline, std::span<const PowerPoint> samples,
                       const SensorParameters& parameters, double period_s);
  // From a counter: an observation is the energy between two consecutive `points`.
  IntervalObservations(const KernelTimeline& timeline, std::span<const EnergyPoint> points,
                       const SensorParameters& parameters);

  // Adds an idle power that is known from a calibration, as a few observations of an idle device. `sd_w`: its
  // standard deviation. Adds nothing if there are no observations yet.
  void add_idle_power(double watts, double sd_w);

  std::size_t size() const { return scaled_joules_.size(); }
  std::size_t column_count() const { return busy_times_.column_count; }
  double median_energy_j() const { return median_energy_j_; }  // median energy of an observation
  std::vector<double> column_times_s() const;                  // total time of each column over all observations
  // By observation: measured minus modelled J. Observations of a counter that are longer than the median are divided by
  // sqrt(length / median length), because their noise is larger.
  std::vector<double> residuals(std::span<const double> watts) const;
  // Normal equations of the observations [from, to).
  statistics::NormalEquations normal_equations(std::span<const double> weights, std::size_t first_observation,
                                               std::size_t end_observation) const;
  statistics::NormalEquations normal_equations(std::span<const double> weights) const {
    return normal_equations(weights, 0, size());
  }
  // The same observations with two columns: time of all kernel classes together, and of idle.
  IntervalObservations with_merged_busy_columns() const;

 private:
  IntervalObservations() = default;

  BusyTimeMatrix busy_times_;          // divided by the observation's scale
  std::vector<double> scaled_joules_;  // divided by the observation's scale
  double median_energy_j_ = 0;
};

// Fit of a single power, in watts, to busy and idle time together; 0 without observations.
double mean_power_w(const IntervalObservations& observations);
// The coarsest fit, with one busy and one idle power: the prior of the finer fit.
PowerPrior fit_busy_and_idle_prior(const IntervalObservations& observations);

struct RobustFit {
  std::vector<double> watts;
  std::vector<double> weights;  // of observations, 0 .. 1
  double noise_j = 0;           // standard deviation of a residual, J
  double prior_precision = 0;   // (noise / spread of the prior)^2, where the noise includes outliers
};
// Runs `rounds` rounds of reweighting. Every unknown is shrunk towards the prior.
RobustFit fit_powers_robustly(const IntervalObservations& observations, const PowerPrior& prior, int rounds);
std::vector<statistics::Prior> make_column_priors(std::size_t columns, const PowerPrior& prior, double precision);

// Sum of Huber's loss over residuals in units of `noise_j`: quadratic near zero, linear in the tails.
double huber_cost(std::span<const double> residuals, double noise);

}  // namespace joulemap::attribution
