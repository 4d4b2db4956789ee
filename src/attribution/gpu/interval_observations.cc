// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/interval_observations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/clock.h"
#include "base/median.h"
#include "statistics/huber.h"

namespace joulemap::attribution {
namespace {

// Residuals above this many standard deviations get less weight; 95 % of normally distributed ones are unaffected.
constexpr double kGpuHuberThreshold = 2.0;
// Relative spread of class powers about their mean (on an H200 kinds of kernels range from 0.3 to 1.9 of the mean).
constexpr double kClassPowerRelativeSd = 0.5;
// Lower bound of the noise as a fraction of an observation's energy: few observations often fit well by chance.
constexpr double kMinGpuRelativeNoise = 0.005;
constexpr double kMinResidualNoise_j = 1e-6;
constexpr int kCoarseFitReweightingRounds = 8;
// Noise of an observation as a fraction of its energy, in steady work on an H200.
constexpr double kDefaultRelativeNoise = 0.015;
constexpr std::size_t kIdlePriorObservations = 4;

// Effective degrees of freedom of the fit.
double effective_degrees_of_freedom(const statistics::NormalEquations& sums, double precision) {
  const std::vector<statistics::Prior> priors(sums.size(), statistics::Prior{0, precision});
  const std::vector<double> unscaled_covariance = statistics::unscaled_posterior_covariance(sums, priors);
  double fitted_degrees_of_freedom = 0;
  for (std::size_t i = 0; i < sums.size(); ++i)
    fitted_degrees_of_freedom += 1 - precision * unscaled_covariance[i * sums.size() + i];
  return fitted_degrees_of_freedom;
}

double residual_noise_j(const std::vector<double>& residuals, double fitted_degrees_of_freedom, double median_j) {
  std::vector<double> magnitudes;
  magnitudes.reserve(residuals.size());
  for (const double residual : residuals) magnitudes.push_back(std::abs(residual));
  const double observations = static_cast<double>(residuals.size());
  const double mad_sd_j = kMadToStandardDeviation * median_or(std::move(magnitudes), 0.0);
  return std::max({mad_sd_j * std::sqrt(observations / std::max(observations - fitted_degrees_of_freedom, 1.0)),
                   kMinGpuRelativeNoise * median_j, kMinResidualNoise_j});
}

// The precision of the prior grows with the residual variance, outliers included: when a few observations fit by chance
// and others are far off, the data carry little information.
double prior_precision_from_residuals(const std::vector<double>& residuals, double noise,
                                      double fitted_degrees_of_freedom, double sd_w) {
  double squares = 0;
  for (const double residual : residuals) squares += residual * residual;
  const double observations = static_cast<double>(residuals.size());
  return std::max(squares / std::max(observations - fitted_degrees_of_freedom, 1.0), noise * noise) / (sd_w * sd_w);
}

}  // namespace

IntervalObservations::IntervalObservations(const KernelTimeline& timeline, std::span<const EnergyPoint> points,
                                           const SensorParameters& parameters) {
  std::vector<std::int64_t> edges_ns;
  std::vector<double> lengths_s;
  for (const EnergyPoint& point : points) edges_ns.push_back(point.time_ns - parameters.lag_ns);
  for (std::size_t i = 1; i < points.size(); ++i) {
    scaled_joules_.push_back(points[i].joules - points[i - 1].joules);
    lengths_s.push_back(seconds(edges_ns[i] - edges_ns[i - 1]));
  }
  busy_times_ = timeline.busy_times(edges_ns, parameters.slowdown_exponent);
  const double median_length_s = std::max(median_or(lengths_s, 0.0), 1e-9);
  for (std::size_t i = 0; i < scaled_joules_.size(); ++i) {
    const double scale = std::sqrt(std::max(lengths_s[i] / median_length_s, 1.0));
    scaled_joules_[i] /= scale;
    for (std::size_t k = 0; k < busy_times_.column_count; ++k)
      busy_times_.busy_seconds[i * busy_times_.column_count + k] /= scale;
  }
  median_energy_j_ = median_or(scaled_joules_, 0.0);
}

IntervalObservations::IntervalObservations(const KernelTimeline& timeline, std::span<const PowerPoint> samples,
                                           const SensorParameters& parameters, double period_s) {
  std::vector<std::int64_t> times_ns;
  for (const PowerPoint& point : samples) {
    times_ns.push_back(point.time_ns - parameters.lag_ns);
    scaled_joules_.push_back(point.watts * period_s);
  }
  busy_times_ =
      timeline.exponential_moving_averages(times_ns, parameters.time_constant_ns, parameters.slowdown_exponent);
  for (double& share : busy_times_.busy_seconds) share *= period_s;
  median_energy_j_ = median_or(scaled_joules_, 0.0);
}

// Their length is such that their mean power has the standard deviation `sd_w` if each has the usual noise. A
// recording that shows its own idle power outweighs them.
void IntervalObservations::add_idle_power(double watts, double sd_w) {
  const double noise_j = kDefaultRelativeNoise * median_energy_j_;
  if (size() == 0 || noise_j <= 0 || sd_w <= 0) return;
  const double length_s = noise_j / sd_w / std::sqrt(static_cast<double>(kIdlePriorObservations));
  for (std::size_t i = 0; i < kIdlePriorObservations; ++i) {
    scaled_joules_.push_back(watts * length_s);
    busy_times_.busy_seconds.insert(busy_times_.busy_seconds.end(), busy_times_.column_count - 1, 0.0);
    busy_times_.busy_seconds.push_back(length_s);
  }
}

std::vector<double> IntervalObservations::column_times_s() const {
  std::vector<double> times(column_count());
  for (std::size_t i = 0; i < size(); ++i) {
    for (std::size_t k = 0; k < column_count(); ++k) times[k] += busy_times_[i][k];
  }
  return times;
}

std::vector<double> IntervalObservations::residuals(std::span<const double> watts) const {
  std::vector<double> residuals;
  for (std::size_t i = 0; i < size(); ++i) {
    double modelled_j = 0;
    const std::span<const double> row = busy_times_[i];
    for (std::size_t k = 0; k < row.size(); ++k) modelled_j += row[k] * watts[k];
    residuals.push_back(scaled_joules_[i] - modelled_j);
  }
  return residuals;
}

statistics::NormalEquations IntervalObservations::normal_equations(std::span<const double> weights,
                                                                   std::size_t first_observation,
                                                                   std::size_t end_observation) const {
  statistics::NormalEquations sums(column_count());
  for (std::size_t i = first_observation; i < end_observation; ++i)
    sums.add_observation(busy_times_[i], scaled_joules_[i], weights[i]);
  return sums;
}

IntervalObservations IntervalObservations::with_merged_busy_columns() const {
  IntervalObservations merged_observations;
  merged_observations.scaled_joules_ = scaled_joules_;
  merged_observations.median_energy_j_ = median_energy_j_;
  merged_observations.busy_times_.column_count = 2;
  merged_observations.busy_times_.busy_seconds.reserve(2 * size());
  for (std::size_t i = 0; i < size(); ++i) {
    const std::span<const double> row = busy_times_[i];
    merged_observations.busy_times_.busy_seconds.push_back(std::accumulate(row.begin(), row.end() - 1, 0.0));
    merged_observations.busy_times_.busy_seconds.push_back(row.back());
  }
  return merged_observations;
}

std::vector<statistics::Prior> make_column_priors(std::size_t columns, const PowerPrior& prior, double precision) {
  std::vector<statistics::Prior> priors(columns, statistics::Prior{prior.busy_w, precision});
  priors.back().value = prior.idle_w;
  return priors;
}

double mean_power_w(const IntervalObservations& observations) {
  const IntervalObservations merged_observations = observations.with_merged_busy_columns();
  const std::vector<double> weights(merged_observations.size(), 1.0);
  const statistics::NormalEquations single_unknown_equations =
      merged_observations.normal_equations(weights).with_grouped_unknowns(
          std::vector<std::size_t>(merged_observations.column_count(), 0), 1);
  return single_unknown_equations.gram(0, 0) > 0
             ? single_unknown_equations.moment(0) / single_unknown_equations.gram(0, 0)
             : 0;
}

PowerPrior fit_busy_and_idle_prior(const IntervalObservations& observations) {
  const IntervalObservations merged_observations = observations.with_merged_busy_columns();
  const double mean_w = mean_power_w(merged_observations);
  const double sd_w = std::max(kClassPowerRelativeSd * mean_w, 1e-6);
  PowerPrior prior{mean_w, mean_w, sd_w};
  for (int round = 0; round < kCoarseFitReweightingRounds; ++round) {
    const std::vector<double> residuals = merged_observations.residuals(std::array{prior.busy_w, prior.idle_w});
    const double noise = residual_noise_j(residuals, 2, merged_observations.median_energy_j());
    const double precision = prior_precision_from_residuals(residuals, noise, 2, sd_w);
    const std::vector<statistics::Prior> priors(2, statistics::Prior{mean_w, precision});
    const auto fit = statistics::nonnegative_least_squares(
        merged_observations.normal_equations(statistics::huber_weights(residuals, noise, kGpuHuberThreshold)), priors);
    prior.busy_w = fit.x[0];
    prior.idle_w = fit.x[1];
  }
  return prior;
}

RobustFit fit_powers_robustly(const IntervalObservations& observations, const PowerPrior& prior, int rounds) {
  RobustFit fit;
  fit.watts.assign(observations.column_count(), prior.busy_w);
  fit.watts.back() = prior.idle_w;
  std::vector<double> residuals = observations.residuals(fit.watts);
  fit.noise_j = residual_noise_j(residuals, 2, observations.median_energy_j());
  fit.weights = statistics::huber_weights(residuals, fit.noise_j, kGpuHuberThreshold);
  fit.prior_precision = prior_precision_from_residuals(residuals, fit.noise_j, 2, prior.sd_w);
  for (int round = 0; round < rounds; ++round) {
    const statistics::NormalEquations sums = observations.normal_equations(fit.weights);
    fit.watts = statistics::nonnegative_least_squares(
                    sums, make_column_priors(observations.column_count(), prior, fit.prior_precision))
                    .x;
    residuals = observations.residuals(fit.watts);
    const double fitted_degrees_of_freedom = effective_degrees_of_freedom(sums, fit.prior_precision);
    fit.noise_j = residual_noise_j(residuals, fitted_degrees_of_freedom, observations.median_energy_j());
    fit.weights = statistics::huber_weights(residuals, fit.noise_j, kGpuHuberThreshold);
    fit.prior_precision = prior_precision_from_residuals(residuals, fit.noise_j, fitted_degrees_of_freedom, prior.sd_w);
  }
  return fit;
}

double huber_cost(std::span<const double> residuals, double noise) {
  return statistics::huber_loss(residuals, noise, kGpuHuberThreshold);
}

}  // namespace joulemap::attribution
