// SPDX-License-Identifier: Apache-2.0
#include "attribution/requests/step_model.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/median.h"
#include "statistics/huber.h"
#include "statistics/nonnegative_least_squares.h"

namespace joulemap::attribution {
namespace {

using statistics::NormalEquations;
using statistics::Prior;

constexpr std::size_t kIdlePowerIndex = kStepTermCount;  // index of idle power among the unknowns
constexpr std::size_t kRegressionUnknownCount = kStepTermCount + 1;
using ValuePerUnknown = std::array<double, kRegressionUnknownCount>;

// Shorter intervals have more edge error than information.
constexpr std::int64_t kMinEnergyInterval_ns = 20 * kNanosecondsPerMillisecond;
constexpr std::int64_t kDefaultEnergyInterval_ns = 100 * kNanosecondsPerMillisecond;
constexpr std::size_t kMaxEnergyIntervals = 20'000;
constexpr std::size_t kMinObservations = 12;

constexpr double kStepFitHuberThreshold = 2;
constexpr int kStepFitReweightingRounds = 3;
// Standard deviation of the ratio of a coefficient to its prior. Power differs between phases: on an H200, decoding
// uses half the power of prefill.
constexpr double kCoefficientPriorRelativeSd = 0.7;
// Prior of idle power as a fraction of the mean power in steps, and its sd.
constexpr double kPriorIdlePowerFraction = 0.3;
constexpr double kPriorIdlePowerRelativeSd = 1;
// Scale and sd of a coefficient whose prior is 0, as a fraction of all energy.
constexpr double kZeroPriorEnergyFraction = 0.02;
constexpr double kZeroPriorRelativeSd = 5;
constexpr double kWeakPriorPrecision = 1e-6;
// Sums of residuals over blocks show their autocorrelation: kResidualBlockCount blocks, each of at least
// kMinObservationsPerBlock observations.
constexpr std::size_t kResidualBlockCount = 32;
constexpr std::size_t kMinObservationsPerBlock = 8;

// Deviations from the model are summed over this time: shorter ones are errors of the edges between readings.
constexpr double kDeviationBlockLength_s = 0.5;

struct EnergyObservation {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  double energy_j = 0;
  ValuePerUnknown amounts{};  // terms, and idle seconds
  double covered_s = 0;

  double length_s() const { return seconds(end_ns - begin_ns); }
};

std::vector<std::int64_t> choose_interval_edges(std::span<const std::int64_t> update_times_ns, std::int64_t begin_ns,
                                                std::int64_t end_ns) {
  const std::int64_t shortest_ns =
      std::max(kMinEnergyInterval_ns, (end_ns - begin_ns) / static_cast<std::int64_t>(kMaxEnergyIntervals));
  std::vector<std::int64_t> edges = {begin_ns};
  for (const std::int64_t time_ns : update_times_ns) {
    if (time_ns - edges.back() >= shortest_ns && end_ns - time_ns >= shortest_ns) edges.push_back(time_ns);
  }
  if (update_times_ns.empty()) {
    const std::int64_t step_ns = std::max(kDefaultEnergyInterval_ns, shortest_ns);
    while (end_ns - edges.back() >= 2 * step_ns) edges.push_back(edges.back() + step_ns);
  }
  edges.push_back(end_ns);
  return edges;
}

using Observations = std::vector<EnergyObservation>;

// The first observation that ends after `time_ns`.
Observations::iterator find_observation_ending_after(Observations& observations, std::int64_t time_ns) {
  return std::upper_bound(
      observations.begin(), observations.end(), time_ns,
      [](std::int64_t at_ns, const EnergyObservation& observation) { return at_ns < observation.end_ns; });
}

// Calls visit_overlap(observation, overlap in s) for each of [first, last) that overlaps [begin, end).
template <class Use>
void for_each_overlap(Observations::iterator first_observation, Observations::iterator end_observation,
                      std::int64_t begin_ns, std::int64_t end_ns, const Use& visit_overlap) {
  for (; first_observation != end_observation && first_observation->begin_ns < end_ns; ++first_observation) {
    const std::int64_t overlap_ns =
        std::min(first_observation->end_ns, end_ns) - std::max(first_observation->begin_ns, begin_ns);
    if (overlap_ns > 0) visit_overlap(*first_observation, seconds(overlap_ns));
  }
}

// Sums of the terms of steps that cover whole observations. A long step costs as much as a short one: it changes the
// rates where it begins and ends.
class CoveringStepTerms {
 public:
  explicit CoveringStepTerms(std::size_t observations) : rate_changes_(observations + 1) {}

  // A step of `length_s` covers the observations [first_observation, end_observation).
  void add_step(std::size_t first_observation, std::size_t end_observation,
                std::span<const float, kStepTermCount> terms, double length_s) {
    for (std::size_t i = 0; i < kStepTermCount; ++i) {
      rate_changes_[first_observation].rates[i] += double{terms[i]} / length_s;
      rate_changes_[end_observation].rates[i] -= double{terms[i]} / length_s;
    }
    ++rate_changes_[first_observation].started_step_count;
    ++rate_changes_[end_observation].ended_step_count;
  }

  void add_terms_to_observations(Observations& observations) const {
    StepTerms rates{};
    std::size_t running_step_count = 0;
    for (std::size_t k = 0; k < observations.size(); ++k) {
      const RateChange& change = rate_changes_[k];
      running_step_count += change.started_step_count - change.ended_step_count;
      add_scaled_terms(rates, change.rates);
      if (running_step_count == 0) rates = {};  // differences leave rounding errors
      for (std::size_t i = 0; i < kStepTermCount; ++i)
        observations[k].amounts[i] += std::max(rates[i], 0.0) * observations[k].length_s();
    }
  }

 private:
  struct RateChange {
    StepTerms rates{};  // amounts per second
    std::size_t started_step_count = 0;
    std::size_t ended_step_count = 0;
  };
  std::vector<RateChange> rate_changes_;
};

// `steps`: sorted by begin.
Observations make_observations(std::span<const ObservedStep> steps, std::span<const std::int64_t> edges,
                               const EnergyFunction& energy_j) {
  Observations observations;
  for (std::size_t i = 1; i < edges.size(); ++i)
    observations.push_back({edges[i - 1], edges[i], std::max(energy_j(edges[i - 1], edges[i]), 0.0)});
  std::int64_t covered_until_ns = edges.front();
  CoveringStepTerms covering_terms(observations.size());
  for (const ObservedStep& step : steps) {
    const double length_s = seconds(step.end_ns - step.begin_ns);
    const auto add_terms = [&](EnergyObservation& observation, double overlap_s) {
      for (std::size_t i = 0; i < kStepTermCount; ++i)
        observation.amounts[i] += double{step.terms[i]} * overlap_s / length_s;
    };
    const auto first_observation = find_observation_ending_after(observations, step.begin_ns);
    const auto last_observation =
        find_observation_ending_after(observations, step.end_ns);  // contains the end, or follows it
    if (last_observation - first_observation > 1) {
      for_each_overlap(first_observation, first_observation + 1, step.begin_ns, step.end_ns, add_terms);
      for_each_overlap(last_observation, observations.end(), step.begin_ns, step.end_ns, add_terms);
      covering_terms.add_step(static_cast<std::size_t>(first_observation + 1 - observations.begin()),
                              static_cast<std::size_t>(last_observation - observations.begin()), step.terms, length_s);
    } else {
      for_each_overlap(first_observation, observations.end(), step.begin_ns, step.end_ns, add_terms);
    }
    const std::int64_t uncovered_begin_ns = std::max(step.begin_ns, covered_until_ns);
    if (uncovered_begin_ns < step.end_ns) {
      for_each_overlap(find_observation_ending_after(observations, uncovered_begin_ns), observations.end(),
                       uncovered_begin_ns, step.end_ns,
                       [](EnergyObservation& observation, double overlap_s) { observation.covered_s += overlap_s; });
    }
    covered_until_ns = std::max(covered_until_ns, step.end_ns);
  }
  covering_terms.add_terms_to_observations(observations);
  for (EnergyObservation& observation : observations)
    observation.amounts[kIdlePowerIndex] = std::max(observation.length_s() - observation.covered_s, 0.0);
  return observations;
}

// Robust standard deviation of residuals.
double robust_standard_deviation(const std::vector<double>& residuals) {
  std::vector<double> magnitudes(residuals.size());
  std::ranges::transform(residuals, magnitudes.begin(), [](double value) { return std::abs(value); });
  return kMadToStandardDeviation * median_or(std::move(magnitudes), 0.0);
}

// Seconds per unit of each term, from the durations of all steps: Huber regression with nonnegative coefficients.
StepTerms fit_step_time_coefficients(std::span<const ObservedStep> steps) {
  StepTerms mean{};
  for (const ObservedStep& step : steps) {
    for (std::size_t i = 0; i < kStepTermCount; ++i) mean[i] += step.terms[i] / static_cast<double>(steps.size());
  }
  const auto make_regression_row = [&](const ObservedStep& step) {
    StepTerms row{};
    for (std::size_t i = 0; i < kStepTermCount; ++i) row[i] = mean[i] > 0 ? step.terms[i] / mean[i] : 0;
    return row;
  };
  const std::vector<Prior> priors(kStepTermCount, {0, 1e-6 * static_cast<double>(steps.size())});
  std::vector<double> x(kStepTermCount, 0);
  double noise_s = 0;
  for (int round = 0; round < kStepFitReweightingRounds; ++round) {
    NormalEquations sums(kStepTermCount);
    for (const ObservedStep& step : steps) {
      const StepTerms row = make_regression_row(step);
      const double time_s = seconds(step.end_ns - step.begin_ns);
      double predicted_s = 0;
      for (std::size_t i = 0; i < kStepTermCount; ++i) predicted_s += row[i] * x[i];
      const double weight =
          noise_s > 0 ? statistics::huber_weight((time_s - predicted_s) / noise_s, kStepFitHuberThreshold) : 1;
      sums.add_observation(row, time_s, weight);
    }
    x = statistics::nonnegative_least_squares(sums, priors).x;
    constexpr std::size_t kMaxResiduals = 100'000;
    const std::size_t stride = steps.size() / kMaxResiduals + 1;
    std::vector<double> residuals;
    for (std::size_t k = 0; k < steps.size(); k += stride) {
      const StepTerms row = make_regression_row(steps[k]);
      double predicted_s = 0;
      for (std::size_t i = 0; i < kStepTermCount; ++i) predicted_s += row[i] * x[i];
      residuals.push_back(seconds(steps[k].end_ns - steps[k].begin_ns) - predicted_s);
    }
    noise_s = robust_standard_deviation(residuals);
  }
  StepTerms coefficients{};
  for (std::size_t i = 0; i < kStepTermCount; ++i) coefficients[i] = mean[i] > 0 ? x[i] / mean[i] : 0;
  return coefficients;
}

// The unknowns are fitted as multiples of `unit`, near `value` with standard deviation `sd`.
struct ScaledPrior {
  double unit = 0;
  double value = 1;
  double sd = 1;
};
using ScaledPriors = std::array<ScaledPrior, kRegressionUnknownCount>;

ScaledPriors make_coefficient_priors(std::span<const ObservedStep> steps,
                                     std::span<const EnergyObservation> observations) {
  ValuePerUnknown totals{};
  double energy_j = 0;
  double covered_s = 0;
  for (const EnergyObservation& observation : observations) {
    for (std::size_t i = 0; i < kRegressionUnknownCount; ++i) totals[i] += observation.amounts[i];
    energy_j += observation.energy_j;
    covered_s += observation.covered_s;
  }
  const double mean_w = energy_j / (covered_s + kPriorIdlePowerFraction * totals[kIdlePowerIndex]);
  const StepTerms times = fit_step_time_coefficients(steps);
  ScaledPriors priors;
  for (std::size_t i = 0; i < kStepTermCount; ++i) {
    if (totals[i] <= 0) continue;
    priors[i] = {mean_w * times[i], 1, kCoefficientPriorRelativeSd};
    const double min_prior = kZeroPriorEnergyFraction * energy_j / totals[i];
    if (priors[i].unit < min_prior) priors[i] = {min_prior, priors[i].unit / min_prior, kZeroPriorRelativeSd};
  }
  priors[kIdlePowerIndex] = {kPriorIdlePowerFraction * mean_w, 1, kPriorIdlePowerRelativeSd};
  return priors;
}

struct StepEnergyFit {
  std::vector<double> scaled_coefficients;  // unknowns / unit
  std::vector<double> covariance;
  double noise = 0;  // J per square root of a second
};

// An observation divided by the square root of its length: the variance of energy grows with time.
ValuePerUnknown scaled_amounts(const EnergyObservation& observation, const ScaledPriors& priors) {
  ValuePerUnknown row{};
  for (std::size_t i = 0; i < kRegressionUnknownCount; ++i)
    row[i] = observation.amounts[i] * priors[i].unit / std::sqrt(observation.length_s());
  return row;
}

double scaled_residual(const EnergyObservation& observation, const ScaledPriors& priors,
                       const std::vector<double>& scaled_coefficients) {
  double predicted_j = 0;
  for (std::size_t i = 0; i < kRegressionUnknownCount; ++i)
    predicted_j += observation.amounts[i] * priors[i].unit * scaled_coefficients[i];
  return (observation.energy_j - predicted_j) / std::sqrt(observation.length_s());
}

// Covariance of the unknowns from the residuals themselves, in blocks (a sandwich estimate): an error of the model that
// lasts as long as the mixture of requests counts as often as the mixture changes, not as often as energy is read.
// `unscaled_covariance`: inverse of the normal equations with priors.
std::vector<double> block_sandwich_covariance(std::span<const EnergyObservation> observations,
                                              const ScaledPriors& priors, std::span<const double> weighted_residuals,
                                              std::span<const double> unscaled_covariance) {
  const std::size_t length =
      std::max(kMinObservationsPerBlock, (observations.size() + kResidualBlockCount - 1) / kResidualBlockCount);
  std::vector<double> covariance(kRegressionUnknownCount * kRegressionUnknownCount, 0);
  double blocks = 0;
  for (std::size_t begin = 0; begin < observations.size(); begin += length, ++blocks) {
    ValuePerUnknown score{};
    for (std::size_t k = begin; k < std::min(begin + length, observations.size()); ++k) {
      const ValuePerUnknown row = scaled_amounts(observations[k], priors);
      for (std::size_t i = 0; i < kRegressionUnknownCount; ++i) score[i] += weighted_residuals[k] * row[i];
    }
    ValuePerUnknown change{};  // of the unknowns, by this block
    for (std::size_t i = 0; i < kRegressionUnknownCount; ++i) {
      for (std::size_t k = 0; k < kRegressionUnknownCount; ++k)
        change[i] += unscaled_covariance[i * kRegressionUnknownCount + k] * score[k];
    }
    for (std::size_t i = 0; i < kRegressionUnknownCount; ++i) {
      for (std::size_t k = 0; k < kRegressionUnknownCount; ++k)
        covariance[i * kRegressionUnknownCount + k] += change[i] * change[k];
    }
  }
  const double covariance_correction = blocks / std::max(blocks - static_cast<double>(kRegressionUnknownCount), 1.0);
  for (double& value : covariance) value *= covariance_correction;
  return covariance;
}

StepEnergyFit fit_step_energy(std::span<const EnergyObservation> observations, const ScaledPriors& scaled) {
  StepEnergyFit fit;
  fit.scaled_coefficients.assign(kRegressionUnknownCount, 0);
  for (std::size_t i = 0; i < kRegressionUnknownCount; ++i) fit.scaled_coefficients[i] = scaled[i].value;
  std::vector<double> residuals(observations.size());
  const auto set_residuals = [&] {
    for (std::size_t k = 0; k < observations.size(); ++k)
      residuals[k] = scaled_residual(observations[k], scaled, fit.scaled_coefficients);
    fit.noise = std::max(robust_standard_deviation(residuals), 1e-9);
  };
  set_residuals();
  std::vector<Prior> priors(kRegressionUnknownCount);
  NormalEquations sums(kRegressionUnknownCount);
  for (int round = 0; round < kStepFitReweightingRounds + 1; ++round) {
    sums = NormalEquations(kRegressionUnknownCount);
    for (std::size_t k = 0; k < observations.size(); ++k) {
      const EnergyObservation& observation = observations[k];
      const double weight = round == 0 ? 1 : statistics::huber_weight(residuals[k] / fit.noise, kStepFitHuberThreshold);
      sums.add_observation(scaled_amounts(observation, scaled),
                           observation.energy_j / std::sqrt(observation.length_s()), weight);
    }
    for (std::size_t i = 0; i < kRegressionUnknownCount; ++i) {
      const double relative_noise = fit.noise / scaled[i].sd;
      priors[i] = {scaled[i].value,
                   round == 0 ? kWeakPriorPrecision * (sums.gram(i, i) + 1) : relative_noise * relative_noise};
    }
    fit.scaled_coefficients = statistics::nonnegative_least_squares(sums, priors).x;
    set_residuals();
  }
  const std::vector<double> unscaled_covariance = statistics::unscaled_posterior_covariance(sums, priors);
  for (double& residual : residuals) residual *= statistics::huber_weight(residual / fit.noise, kStepFitHuberThreshold);
  fit.covariance = block_sandwich_covariance(observations, scaled, residuals, unscaled_covariance);
  // Few blocks vary by chance. Independent residuals set the least variance.
  const auto count = static_cast<double>(observations.size());
  const double covariance_correction = count / std::max(count - static_cast<double>(kRegressionUnknownCount), 1.0);
  for (std::size_t i = 0; i < fit.covariance.size(); ++i)
    fit.covariance[i] += fit.noise * fit.noise * covariance_correction * unscaled_covariance[i];
  return fit;
}

}  // namespace

double FittedStepModel::mean_energy_scale(std::int64_t begin_ns, std::int64_t end_ns) const {
  if (edges_ns_.size() < 2 || end_ns <= begin_ns) return 0;
  const auto integral_at = [&](std::int64_t time_ns) {
    const std::int64_t inside_ns = std::clamp(time_ns, edges_ns_.front(), edges_ns_.back());
    const auto following_edge = std::upper_bound(edges_ns_.begin(), edges_ns_.end() - 1, inside_ns);
    const auto interval = static_cast<std::size_t>(following_edge - edges_ns_.begin()) - 1;
    return energy_scale_integral_[interval] + energy_scales_[interval] * seconds(inside_ns - edges_ns_[interval]);
  };
  return (integral_at(end_ns) - integral_at(begin_ns)) / seconds(end_ns - begin_ns);
}

double FittedStepModel::deviation_variance_j2(double energy_j, double all_energy_j) const {
  if (all_energy_j <= 0) return 0;
  return deviation_variance_per_joule_j * energy_j * std::clamp(1 - energy_j / all_energy_j, 0.0, 1.0);
}

double FittedStepModel::coefficient_standard_error(StepTerm term) const {
  return covariance_.empty() ? 0 : std::sqrt(std::max(covariance_[term * kRegressionUnknownCount + term], 0.0));
}

double FittedStepModel::standard_error_j(const StepTerms& term_amounts) const {
  if (covariance_.empty()) return 0;
  double total_j = amount_totals_[kIdlePowerIndex] * idle_w;
  for (std::size_t i = 0; i < kStepTermCount; ++i) total_j += amount_totals_[i] * coefficients[i];
  const double share = total_j > 0 ? dot_product(term_amounts, coefficients) / total_j : 0;
  ValuePerUnknown gradient{};
  for (std::size_t i = 0; i < kRegressionUnknownCount; ++i)
    gradient[i] = (i < kStepTermCount ? term_amounts[i] : 0) - share * amount_totals_[i];
  double variance = 0;
  for (std::size_t i = 0; i < kRegressionUnknownCount; ++i) {
    for (std::size_t k = 0; k < kRegressionUnknownCount; ++k)
      variance += gradient[i] * gradient[k] * covariance_[i * kRegressionUnknownCount + k];
  }
  return std::sqrt(std::max(variance, 0.0));
}

FittedStepModel fit_step_model(std::vector<ObservedStep> steps, std::span<const std::int64_t> edges_ns,
                               const EnergyFunction& energy_j) {
  FittedStepModel model;
  std::erase_if(steps, [](const ObservedStep& step) { return step.end_ns <= step.begin_ns; });
  if (steps.empty()) return model;
  std::ranges::sort(steps, {}, &ObservedStep::begin_ns);
  const std::int64_t end_ns = std::ranges::max(steps, {}, &ObservedStep::end_ns).end_ns;
  model.edges_ns_ = choose_interval_edges(edges_ns, steps.front().begin_ns, end_ns);
  const std::vector<EnergyObservation> observations = make_observations(steps, model.edges_ns_, energy_j);
  const ScaledPriors priors = make_coefficient_priors(steps, observations);
  model.observations = observations.size();
  model.is_regressed = observations.size() >= kMinObservations;
  std::vector<double> scaled_coefficients(kRegressionUnknownCount);
  for (std::size_t i = 0; i < kRegressionUnknownCount; ++i) scaled_coefficients[i] = priors[i].value;
  model.covariance_.assign(kRegressionUnknownCount * kRegressionUnknownCount, 0);
  if (model.is_regressed) {
    StepEnergyFit fit = fit_step_energy(observations, priors);
    scaled_coefficients = std::move(fit.scaled_coefficients);
    model.covariance_ = std::move(fit.covariance);
  } else {
    for (std::size_t i = 0; i < kRegressionUnknownCount; ++i)
      model.covariance_[i * kRegressionUnknownCount + i] = priors[i].sd * priors[i].sd;
  }
  for (std::size_t i = 0; i < kRegressionUnknownCount; ++i) {
    (i == kIdlePowerIndex ? model.idle_w : model.coefficients[i]) = scaled_coefficients[i] * priors[i].unit;
    for (std::size_t k = 0; k < kRegressionUnknownCount; ++k)
      model.covariance_[i * kRegressionUnknownCount + k] *= priors[i].unit * priors[k].unit;
  }
  double squares = 0;
  double integral = 0;
  double squared_deviations = 0;
  double all_energy_j = 0;
  double deviation_j = 0;  // of the observations since the last sum
  double summed_s = 0;
  for (const EnergyObservation& observation : observations) {
    double modelled_j = observation.amounts[kIdlePowerIndex] * model.idle_w;
    for (std::size_t i = 0; i < kStepTermCount; ++i) modelled_j += observation.amounts[i] * model.coefficients[i];
    const double scale = modelled_j > 0 ? observation.energy_j / modelled_j : 0;
    squares += modelled_j > 0 ? (scale - 1) * (scale - 1) : 0;
    model.energy_scales_.push_back(scale);
    model.energy_scale_integral_.push_back(integral);
    integral += scale * observation.length_s();
    all_energy_j += observation.energy_j;
    deviation_j += observation.energy_j - modelled_j;
    summed_s += observation.length_s();
    if (summed_s >= kDeviationBlockLength_s) {
      squared_deviations += deviation_j * deviation_j;
      deviation_j = summed_s = 0;
    }
    for (std::size_t i = 0; i < kRegressionUnknownCount; ++i) model.amount_totals_[i] += scale * observation.amounts[i];
  }
  model.deviation_variance_per_joule_j =
      all_energy_j > 0 ? (squared_deviations + deviation_j * deviation_j) / all_energy_j : 0;
  model.relative_error = std::sqrt(squares / static_cast<double>(observations.size()));
  return model;
}

}  // namespace joulemap::attribution
