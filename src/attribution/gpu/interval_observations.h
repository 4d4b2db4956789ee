// SPDX-License-Identifier: Apache-2.0
//
// IntervalObservations: the observations of a power regression at one sensor lag, with weights that a robust fit may lower.
// Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "attribution/gpu/kernel_timeline.h"
#include "attribution/ledger/time_curve.h"
#include "statistics/nonnegative_least_squares.h"

namespace joulemap::attribution {

// Prior of the power of all classes.
struct PowerPrior {
  double busy_w = 0;
  double idle_w = 0;
  double spread_w = 0;
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
  // Between counter updates. `points`: the updates to use, all of them.
  IntervalObservations(const KernelTimeline& timeline, std::span<const EnergyPoint> points,
                       const SensorParameters& parameters);

  // Adds what is known about idle power from elsewhere, as observations of an idle device.
  void add_idle_power(double watts, double spread_w);

  std::size_t size() const { return joules_.size(); }
  std::size_t columns() const { return busy_.columns; }
  double median_j() const { return median_j_; }  // median energy of an observation
  std::vector<double> column_times_s() const;    // total time of each column over all observations
  // In units of the noise scale of a median-length observation: the noise of longer observations is larger.
  std::vector<double> residuals(std::span<const double> watts) const;
  statistics::NormalEquations sums(std::span<const double> weights, std::size_t from, std::size_t to) const;
  statistics::NormalEquations sums(std::span<const double> weights) const { return sums(weights, 0, size()); }

 private:
  BusyTimeMatrix busy_;         // divided by the observation's scale
  std::vector<double> joules_;  // divided by the observation's scale
  double median_j_ = 0;
};

// Mean power over busy and idle time.
double mean_power(const IntervalObservations& observations);
// The coarsest fit, with one busy and one idle power: the prior of the finer fit.
PowerPrior busy_and_idle_prior(const IntervalObservations& observations);

struct RobustFit {
  std::vector<double> watts;
  std::vector<double> weights;  // of observations, 0 .. 1
  double noise = 0;             // standard deviation of an observation
  double prior_precision = 0;   // precision of the prior: (noise / spread)^2, with outliers included
};
// Runs `rounds` rounds of reweighting. Every unknown is shrunk towards the prior.
RobustFit robust_fit(const IntervalObservations& observations, const PowerPrior& prior, int rounds);
std::vector<statistics::Prior> priors_for(std::size_t columns, const PowerPrior& prior, double precision);

// Huber's loss: quadratic near zero, linear in the tails. In units of `noise`.
double huber_cost(std::span<const double> residuals, double noise);

}  // namespace joulemap::attribution
