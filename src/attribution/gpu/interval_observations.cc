// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/interval_observations.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/median.h"

namespace joulemap::attribution {
namespace {

// Residuals above this many standard deviations get less weight; 97 % of a normal distribution's are unaffected.
constexpr double kHuber = 2.0;
constexpr double kMadToDeviation = 1.4826;
// Relative spread of class powers about their mean (on an H200 kinds of kernels range from 0.3 to 1.9 of the mean).
constexpr double kPriorSpread = 0.5;
// Lower bound of the noise as a fraction of an observation's energy: few observations often fit well by chance.
constexpr double kLeastNoise = 0.005;
constexpr double kLeastNoise_j = 1e-6;
constexpr int kCoarseRounds = 8;

// Effective degrees of freedom of the fit.
double used_up(const statistics::GramSums& sums, double pull) {
  const std::vector<statistics::Prior> priors(sums.size(), statistics::Prior{0, pull});
  const std::vector<double> inverse = statistics::posterior_inverse(sums, priors);
  double used = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) used += 1 - pull * inverse[i * sums.size() + i];
  return used;
}

double noise_of(const std::vector<double>& residuals, double used, double usual_j) {
  std::vector<double> sizes;
  sizes.reserve(residuals.size());
  for (const double residual : residuals) sizes.push_back(std::abs(residual));
  const double rows = static_cast<double>(residuals.size());
  const double typical_j = kMadToDeviation * median_or(std::move(sizes), 0.0);
  return std::max({typical_j * std::sqrt(rows / std::max(rows - used, 1.0)), kLeastNoise * usual_j, kLeastNoise_j});
}

// The precision of the prior grows with the residual variance, outliers included: when a few observations fit by chance
// and others are far off, the data carry little information.
double pull_of(const std::vector<double>& residuals, double noise, double used, double spread_w) {
  double squares = 0;
  for (const double residual : residuals) squares += residual * residual;
  const double rows = static_cast<double>(residuals.size());
  return std::max(squares / std::max(rows - used, 1.0), noise * noise) / (spread_w * spread_w);
}

std::vector<double> huber_weights(const std::vector<double>& residuals, double noise) {
  std::vector<double> weights;
  weights.reserve(residuals.size());
  for (const double residual : residuals) {
    weights.push_back(std::min(1.0, kHuber * noise / std::max(std::abs(residual), kLeastNoise_j)));
  }
  return weights;
}

}  // namespace

IntervalObservations::IntervalObservations(const KernelTimeline& timeline, std::span<const EnergyPoint> points,
                                           const Sensing& sensing) {
  std::vector<std::int64_t> edges_ns;
  std::vector<double> lengths_s;
  for (const EnergyPoint& point : points) edges_ns.push_back(point.time_ns - sensing.lag_ns);
  for (std::size_t i = 1; i < points.size(); ++i) {
    joules_.push_back(points[i].joules - points[i - 1].joules);
    lengths_s.push_back(seconds(edges_ns[i] - edges_ns[i - 1]));
  }
  busy_ = timeline.busy(edges_ns, sensing.pace);
  const double usual_s = std::max(median_or(lengths_s, 0.0), 1e-9);
  for (std::size_t i = 0; i < joules_.size(); ++i) {
    const double scale = std::sqrt(std::max(lengths_s[i] / usual_s, 1.0));
    joules_[i] /= scale;
    for (std::size_t k = 0; k < busy_.columns; ++k) busy_.seconds[i * busy_.columns + k] /= scale;
  }
  usual_j_ = median_or(joules_, 0.0);
}

IntervalObservations::IntervalObservations(const KernelTimeline& timeline, std::span<const PowerPoint> shown,
                                           const Sensing& sensing, double period_s) {
  std::vector<std::int64_t> moments_ns;
  for (const PowerPoint& point : shown) {
    moments_ns.push_back(point.time_ns - sensing.lag_ns);
    joules_.push_back(point.watts * period_s);
  }
  busy_ = timeline.remembered(moments_ns, sensing.memory_ns, sensing.pace);
  for (double& share : busy_.seconds) share *= period_s;
  usual_j_ = median_or(joules_, 0.0);
}

std::vector<double> IntervalObservations::times_s() const {
  std::vector<double> times(columns());
  for (std::size_t i = 0; i < size(); ++i) {
    for (std::size_t k = 0; k < columns(); ++k) times[k] += busy_[i][k];
  }
  return times;
}

std::vector<double> IntervalObservations::residuals(std::span<const double> watts) const {
  std::vector<double> left;
  for (std::size_t i = 0; i < size(); ++i) {
    double modelled_j = 0;
    const std::span<const double> row = busy_[i];
    for (std::size_t k = 0; k < row.size(); ++k) modelled_j += row[k] * watts[k];
    left.push_back(joules_[i] - modelled_j);
  }
  return left;
}

statistics::GramSums IntervalObservations::sums(std::span<const double> weights, std::size_t from,
                                                std::size_t to) const {
  statistics::GramSums sums(columns());
  for (std::size_t i = from; i < to; ++i) sums.add_row(busy_[i], joules_[i], weights[i]);
  return sums;
}

std::vector<statistics::Prior> priors_for(std::size_t columns, const PowerPrior& prior, double pull) {
  std::vector<statistics::Prior> priors(columns, statistics::Prior{prior.busy_w, pull});
  priors.back().value = prior.idle_w;
  return priors;
}

double mean_power(const IntervalObservations& rows) {
  const std::vector<double> weights(rows.size(), 1.0);
  const statistics::GramSums one = rows.sums(weights).grouped(std::vector<std::size_t>(rows.columns(), 0), 1);
  return one.gram(0, 0) > 0 ? one.moment(0) / one.gram(0, 0) : 0;
}

PowerPrior coarse_prior(const IntervalObservations& rows) {
  std::vector<std::size_t> group_of(rows.columns(), 0);
  group_of.back() = 1;
  std::vector<double> weights(rows.size(), 1.0);
  const double mean_w = mean_power(rows);
  const double spread_w = std::max(kPriorSpread * mean_w, 1e-6);
  PowerPrior prior{mean_w, mean_w, spread_w};
  for (int round = 0; round < kCoarseRounds; ++round) {
    std::vector<double> watts(rows.columns(), prior.busy_w);
    watts.back() = prior.idle_w;
    const std::vector<double> left = rows.residuals(watts);
    const double noise = noise_of(left, 2, rows.usual_j());
    weights = huber_weights(left, noise);
    const double pull = pull_of(left, noise, 2, spread_w);
    const std::vector<statistics::Prior> priors(2, statistics::Prior{mean_w, pull});
    const auto fit = statistics::nonnegative_least_squares(rows.sums(weights).grouped(group_of, 2), priors);
    prior.busy_w = fit.x[0];
    prior.idle_w = fit.x[1];
  }
  return prior;
}

RobustFit robust_fit(const IntervalObservations& rows, const PowerPrior& prior, int rounds) {
  RobustFit fit;
  fit.watts.assign(rows.columns(), prior.busy_w);
  fit.watts.back() = prior.idle_w;
  std::vector<double> left = rows.residuals(fit.watts);
  fit.noise = noise_of(left, 2, rows.usual_j());
  fit.weights = huber_weights(left, fit.noise);
  fit.pull = pull_of(left, fit.noise, 2, prior.spread_w);
  for (int round = 0; round < rounds; ++round) {
    const statistics::GramSums sums = rows.sums(fit.weights);
    fit.watts = statistics::nonnegative_least_squares(sums, priors_for(rows.columns(), prior, fit.pull)).x;
    left = rows.residuals(fit.watts);
    const double used = used_up(sums, fit.pull);
    fit.noise = noise_of(left, used, rows.usual_j());
    fit.weights = huber_weights(left, fit.noise);
    fit.pull = pull_of(left, fit.noise, used, prior.spread_w);
  }
  return fit;
}

double huber_cost(std::span<const double> residuals, double noise) {
  double cost = 0;
  for (const double residual : residuals) {
    const double size = std::abs(residual) / noise;
    cost += size <= kHuber ? size * size / 2 : kHuber * (size - kHuber / 2);
  }
  return cost;
}

}  // namespace joulemap::attribution
