// SPDX-License-Identifier: Apache-2.0
#include "attribution/cpu/cpu_powers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "attribution/cpu/cpu_observations.h"
#include "attribution/gpu/power_regression.h"
#include "attribution/gpu/separable_groups.h"
#include "base/median.h"
#include "statistics/cholesky.h"
#include "statistics/huber.h"
#include "statistics/random.h"

namespace joulemap::attribution {
namespace {

using statistics::Random;

constexpr std::size_t kMinObservations = 20;
constexpr int kCpuFitReweightingRounds = 5;
constexpr double kCpuHuberThreshold = 1.345;
constexpr std::uint64_t kReplicateSeed = 0x6A6F756C65;

// Relative standard deviation of the power of a CPU second between kinds of work: scalar Python, memory-bound loops and
// vector instructions at the package's limit differ by a factor of two and more at the extremes.
constexpr double kCpuPowerRelativeSd = 0.3;
// Prior fractions of the mean power that are idle. Observations with all CPUs busy seem to identify idle power, but
// only reflect how coarsely CPU time is counted. So each of these fractions is tried with equal probability, unless the
// machine was seen idle.
constexpr std::array<double, 3> kPriorIdleFractions = {0.25, 0.12, 0.38};
constexpr double kIdlePriorSdFraction = 0.02;
constexpr double kMaxBusyCpusAtIdle =
    0.12;  // maximum count of busy CPUs at idle; ticks of 10 ms alone look like half of that
constexpr std::size_t kMinIdleObservations = 5;
// Candidate exponents of power over the number of busy CPUs.
constexpr std::array<double, 6> kBusyCpuExponents = {1, 0.9, 0.8, 0.7, 0.6, 0.5};
// Lower bound of the power of a busy CPU, against outliers; a power of 0 would have no interval.
constexpr double kMinBusyCpuPowerFraction = 0.02;
// Relative model error of each column: clocks that change with the number of busy CPUs, threads that share a core.
constexpr double kModelPowerRelativeError = 0.04;
// The times at which other processes ran are known to a fifth of a second at best, which biases their power low: by 8
// to 15 % on the simulated machine (bench/attribution/cpu_truth.py).
constexpr double kOtherProcessesPowerRelativeError = 0.1;
// Residuals of neighbouring observations are correlated: block length for estimating their autocorrelation.
constexpr std::size_t kAutocorrelationBlockObservations = 20;
constexpr double kMinRelativeNoise = 1e-3;  // of an observation; a smaller value is chance

double weighted_residual_sd(std::span<const double> residuals, std::span<const double> weights,
                            double effective_parameter_count) {
  double sum = 0;
  double count = 0;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    sum += weights[i] * residuals[i] * residuals[i];
    count += weights[i];
  }
  return std::sqrt(sum / std::max(count - effective_parameter_count, 1.0));
}

// Ratio of the standard deviation of block sums to that of independent residuals.
double autocorrelation_sd_inflation(std::span<const double> residuals, std::span<const double> weights) {
  double block_sum_squares = 0;
  double sum_of_squares = 0;
  for (std::size_t begin = 0; begin + kAutocorrelationBlockObservations <= residuals.size();
       begin += kAutocorrelationBlockObservations) {
    double sum = 0;
    for (std::size_t i = begin; i < begin + kAutocorrelationBlockObservations; ++i) {
      sum += weights[i] * residuals[i];
      sum_of_squares += weights[i] * residuals[i] * weights[i] * residuals[i];
    }
    block_sum_squares += sum * sum;
  }
  return sum_of_squares > 0 ? std::max(std::sqrt(block_sum_squares / sum_of_squares), 1.0) : 1;
}

// Robust standard deviation of residuals.
double robust_scale(std::span<const double> residuals) {
  std::vector<double> magnitudes;
  for (const double residual : residuals) magnitudes.push_back(std::abs(residual));
  return std::max(kMadToStandardDeviation * median_or(std::move(magnitudes), 0.0), 1e-12);
}

// A fit of unknowns with priors, each with a spread of its own.
struct CpuPowerFit {
  std::vector<double> watts;
  std::vector<double> weights;
  std::vector<double> unscaled_covariance;  // of the last round: times the noise variance, the covariance of the watts
  std::vector<double> data_fractions;
  std::vector<double> residuals;  // residual of each observation
  double noise = 0;
  double busy_cpu_exponent = 1;
  std::vector<double> weighted_cpu_s;  // by unknown: sum over all observations
  double prior_cost = 0;               // cost of the distance between watts and prior
};

double mean_scaled_energy(const CpuObservations& observations) {
  return observations.energy_j() / std::sqrt(observations.time_s() * static_cast<double>(observations.size()));
}

// Prior of the unknowns: busy CPUs have a common power of any value, with a spread about it; and an idle power.
class CpuPowerPriors {
 public:
  CpuPowerPriors(const CpuObservations& observations, double idle_w)
      : mean_power_w_(observations.energy_j() / observations.time_s()),
        idle_w_(idle_w),
        busy_unknown_count_(observations.unknown_power_count() - 1) {
    double weighted_cpu_s = 0;
    for (std::size_t k = 0; k < busy_unknown_count_; ++k) weighted_cpu_s += observations.weighted_cpu_s()[k];
    common_power_w_ =
        std::max(observations.energy_j() - idle_w * observations.time_s(), 0.1 * observations.energy_j()) /
        std::max(weighted_cpu_s, 1e-9);
  }

  double common_power_w() const { return common_power_w_; }
  double sd_w() const { return kCpuPowerRelativeSd * common_power_w_; }
  // Prior observations: each power differs from the mean of all by zero, with a precision given by the spread.
  void add_power_prior_observations(statistics::NormalEquations& sums, double noise) const {
    const double mean_weight = -1.0 / static_cast<double>(busy_unknown_count_);
    for (std::size_t k = 0; k < busy_unknown_count_; ++k) {
      std::vector<double> row(busy_unknown_count_ + 1, mean_weight);
      row[k] += 1;
      row[busy_unknown_count_] = 0;
      sums.add_observation(row, 0, std::pow(noise / sd_w(), 2));
    }
  }
  std::vector<statistics::Prior> make_solver_priors(double noise) const {
    std::vector<statistics::Prior> priors(busy_unknown_count_, {common_power_w_, std::pow(noise / common_power_w_, 2)});
    priors.push_back({idle_w_, std::pow(noise / (kIdlePriorSdFraction * mean_power_w_), 2)});
    return priors;
  }
  // Fraction of each unknown that comes from data; for busy CPUs, of their difference from the mean of all.
  std::vector<double> data_fractions(const CpuPowerFit& fit) const {
    const std::size_t size = busy_unknown_count_ + 1;
    std::vector<double> row_sums(busy_unknown_count_);
    double covariance_sum = 0;
    for (std::size_t i = 0; i < busy_unknown_count_; ++i) {
      for (std::size_t j = 0; j < busy_unknown_count_; ++j) row_sums[i] += fit.unscaled_covariance[i * size + j];
      covariance_sum += row_sums[i];
    }
    const auto count = static_cast<double>(busy_unknown_count_);
    std::vector<double> shares;
    for (std::size_t k = 0; k < busy_unknown_count_; ++k) {
      const double difference =
          fit.unscaled_covariance[k * size + k] - 2 * row_sums[k] / count + covariance_sum / (count * count);
      shares.push_back(1 - fit.noise * fit.noise * difference / (sd_w() * sd_w()));
    }
    const double idle_variance = fit.noise * fit.noise * fit.unscaled_covariance.back();
    shares.push_back(1 - idle_variance / std::pow(kIdlePriorSdFraction * mean_power_w_, 2));
    return shares;
  }

  double prior_distance_cost(const std::vector<double>& watts) const {
    double mean = 0;
    for (std::size_t k = 0; k < busy_unknown_count_; ++k) mean += watts[k] / static_cast<double>(busy_unknown_count_);
    double sum = std::pow((watts.back() - idle_w_) / (kIdlePriorSdFraction * mean_power_w_), 2);
    for (std::size_t k = 0; k < busy_unknown_count_; ++k) sum += std::pow((watts[k] - mean) / sd_w(), 2);
    return sum / 2;
  }

 private:
  double mean_power_w_;
  double idle_w_;
  double common_power_w_ = 0;
  std::size_t busy_unknown_count_;  // all unknowns but idle
};

CpuPowerFit fit_powers_robustly(const CpuObservations& observations, double idle_w) {
  const double mean = mean_scaled_energy(observations);
  const CpuPowerPriors priors(observations, idle_w);
  CpuPowerFit fit;
  fit.weights.assign(observations.size(), 1.0);
  fit.noise = mean / 10;
  for (int round = 0; round < kCpuFitReweightingRounds; ++round) {
    statistics::NormalEquations sums = observations.normal_equations(fit.weights);
    priors.add_power_prior_observations(sums, fit.noise);
    const std::vector<statistics::Prior> make_solver_priors = priors.make_solver_priors(fit.noise);
    fit.watts = statistics::nonnegative_least_squares(sums, make_solver_priors).x;
    fit.unscaled_covariance = statistics::unscaled_posterior_covariance(sums, make_solver_priors);
    fit.data_fractions = priors.data_fractions(fit);
    double effective_parameter_count = 0;
    for (const double share : fit.data_fractions) effective_parameter_count += std::max(share, 0.0);
    fit.residuals = observations.residuals(fit.watts);
    fit.weights = statistics::huber_weights(fit.residuals, robust_scale(fit.residuals), kCpuHuberThreshold);
    const double sd_inflation = autocorrelation_sd_inflation(fit.residuals, fit.weights);
    fit.noise = std::max(weighted_residual_sd(fit.residuals, fit.weights, effective_parameter_count) * sd_inflation,
                         kMinRelativeNoise * mean);
  }
  fit.prior_cost = priors.prior_distance_cost(fit.watts);
  fit.weighted_cpu_s = observations.weighted_cpu_s();
  for (std::size_t k = 0; k + 1 < fit.watts.size(); ++k) {
    fit.watts[k] = std::max(fit.watts[k], kMinBusyCpuPowerFraction * priors.common_power_w());
  }
  return fit;
}

// Median power of observations with hardly any busy CPU; nothing where there are too few.
std::optional<double> measured_idle_w(const CpuObservations& observations) {
  std::vector<double> watts;
  for (std::size_t row = 0; row < observations.size(); ++row) {
    const std::span<const double> entries = observations[row];
    const double busy_cpus = std::accumulate(entries.begin(), entries.end() - 1, 0.0);
    if (busy_cpus < kMaxBusyCpusAtIdle * entries.back())
      watts.push_back(observations.scaled_energy(row) / entries.back());
  }
  if (watts.size() < kMinIdleObservations) return std::nullopt;
  return median_or(std::move(watts), 0.0);
}

// Draws replicates of the powers, by unknown: one of the fits at random, by `fit_probabilities`, and a deviation from its
// covariance. Converts watts of a fit with another growth exponent to those of `best_fit` for the same joules.
std::vector<std::vector<double>> draw_power_replicates(const std::vector<CpuPowerFit>& fits,
                                                       const std::vector<double>& fit_probabilities,
                                                       const CpuPowerFit& best_fit) {
  const std::size_t size = best_fit.watts.size();
  std::vector<std::vector<double>> cholesky_factors;
  cholesky_factors.reserve(fits.size());
  for (const CpuPowerFit& fit : fits)
    cholesky_factors.push_back(statistics::cholesky_factor(fit.unscaled_covariance, size));
  Random random(kReplicateSeed);
  std::vector<std::vector<double>> replicates_w(size, std::vector<double>(kPowerReplicateCount));
  for (std::size_t replicate = 0; replicate < kPowerReplicateCount; ++replicate) {
    std::size_t fit_index = 0;
    for (double remaining_probability = random.uniform();
         fit_index + 1 < fits.size() && remaining_probability >= fit_probabilities[fit_index]; ++fit_index)
      remaining_probability -= fit_probabilities[fit_index];
    std::vector<double> z;
    for (std::size_t k = 0; k < size; ++k) z.push_back(random.normal());
    for (std::size_t i = 0; i < size; ++i) {
      double deviation = 0;
      for (std::size_t k = 0; k <= i; ++k) deviation += cholesky_factors[fit_index][i * size + k] * z[k];
      const double equal_energy_factor =
          best_fit.weighted_cpu_s[i] > 0 ? fits[fit_index].weighted_cpu_s[i] / best_fit.weighted_cpu_s[i] : 1;
      const double watts = (fits[fit_index].watts[i] + fits[fit_index].noise * deviation) * equal_energy_factor;
      const double error = i + 2 == size ? kOtherProcessesPowerRelativeError : kModelPowerRelativeError;
      replicates_w[i][replicate] = std::max(watts * (1 + error * random.normal()), 0.0);
    }
  }
  return replicates_w;
}

// Cost of a fit: Huber loss of the residuals, in units of the noise, plus the prior's cost.
double compute_fit_cost(const CpuPowerFit& fit, double noise) {
  return fit.prior_cost + statistics::huber_loss(fit.residuals, noise, kCpuHuberThreshold);
}

}  // namespace

void draw_gain_replicates(CpuPowers& powers, double gain_spread) {
  Random random(kReplicateSeed + 1);
  powers.gain_replicates.clear();
  for (std::size_t replicate = 0; replicate < kPowerReplicateCount; ++replicate) {
    powers.gain_replicates.push_back(std::max(1 + gain_spread * random.normal(), 0.0));
  }
}

CpuPowers make_equal_cpu_powers(std::size_t columns) {
  CpuPowers powers;
  powers.column_count = columns;
  powers.watts.assign(columns + 2, 1.0);
  powers.is_regressed.assign(columns + 2, false);
  Random random(kReplicateSeed);
  for (std::size_t k = 0; k < columns + 2; ++k) {
    std::vector<double>& replicates_w = powers.power_replicates.emplace_back();
    for (std::size_t replicate = 0; replicate < kPowerReplicateCount; ++replicate) {
      replicates_w.push_back(std::max(powers.watts[k] * (1 + kCpuPowerRelativeSd * random.normal()), 0.0));
    }
  }
  return powers;
}

std::optional<CpuPowers> fit_cpu_powers(const CpuUse& use, const MachineCpuTime& machine,
                                        std::span<const std::vector<EnergyPoint>> domains) {
  if (domains.empty() || use.slices.empty()) return std::nullopt;
  std::vector<CpuPowerFit> fits;
  CpuPowers powers;
  powers.column_count = use.column_count;
  for (const double busy_cpu_exponent : kBusyCpuExponents) {
    const CpuObservations observations(use, machine, domains, busy_cpu_exponent);
    if (observations.size() < kMinObservations || observations.energy_j() <= 0 || observations.cpu_s() <= 0)
      return std::nullopt;
    const std::optional<double> idle_w = measured_idle_w(observations);
    powers.is_idle_measured = idle_w.has_value();
    for (const double share : kPriorIdleFractions) {
      fits.push_back(
          fit_powers_robustly(observations, idle_w.value_or(share * observations.energy_j() / observations.time_s())));
      fits.back().busy_cpu_exponent = busy_cpu_exponent;
      if (idle_w) break;
    }
    powers.observation_count = observations.size();
    powers.relative_noise = fits.back().noise / mean_scaled_energy(observations);
  }
  const std::size_t idle_prior_count = powers.is_idle_measured ? 1 : kPriorIdleFractions.size();
  double noise = fits.front().noise;
  for (const CpuPowerFit& fit : fits) noise = std::min(noise, fit.noise);
  const auto cost = [&](const CpuPowerFit& fit) { return compute_fit_cost(fit, noise); };
  // Growth exponents are compared at the default idle fraction; the other fractions get the same probability.
  std::size_t best_fit_index = 0;
  for (std::size_t i = 0; i < fits.size(); i += idle_prior_count)
    best_fit_index = cost(fits[i]) < cost(fits[best_fit_index]) ? i : best_fit_index;
  const CpuPowerFit& best_fit = fits[best_fit_index];
  std::vector<double> fit_probabilities;
  for (std::size_t i = 0; i < fits.size(); ++i)
    fit_probabilities.push_back(std::exp(cost(best_fit) - cost(fits[i - i % idle_prior_count])));
  const double probability_sum = std::accumulate(fit_probabilities.begin(), fit_probabilities.end(), 0.0);
  for (double& probability : fit_probabilities) probability /= probability_sum;
  powers.busy_cpu_exponent = best_fit.busy_cpu_exponent;
  powers.watts = best_fit.watts;
  for (const double share : best_fit.data_fractions) powers.is_regressed.push_back(share >= kMinIdentifiedFraction);
  powers.is_regressed[powers.idle_index()] = powers.is_idle_measured;
  powers.power_replicates = draw_power_replicates(fits, fit_probabilities, best_fit);
  powers.is_fitted = true;
  return powers;
}

}  // namespace joulemap::attribution
