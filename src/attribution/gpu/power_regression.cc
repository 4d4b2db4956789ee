// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/power_regression.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "attribution/gpu/interval_observations.h"
#include "attribution/gpu/power_evidence.h"
#include "attribution/gpu/sensor_model_uncertainty.h"
#include "attribution/gpu/separable_groups.h"
#include "base/clock.h"
#include "base/quadrature.h"
#include "statistics/normal.h"
#include "statistics/random.h"

namespace joulemap::attribution {
namespace {

using statistics::Random;

constexpr std::size_t kMinNoiseObservations = 8;  // observations, to estimate the noise

constexpr std::size_t kMaxBootstrapBlocks = 200;
constexpr std::size_t kMinObservationsPerBlock = 4;
constexpr std::uint64_t kReplicateSeed = 0x6A6F756C65;
// Relative standard deviation of the power of a class that is split by time, and gets the mean power: blocks of a
// ResNet-50 on an H200 differ from a time-proportional split by -9 to +19 %, single kernels by more.
constexpr double kTimeSplitPowerRelativeSd = 0.3;

// Relative standard deviation of a separated class from its power in the model: temperature, clocks, caches that a
// neighbour left warm, a sensor that differs from its model. Measured with mixtures of kernels on an H200
// (bench/h200/mixtures.py, seeds 1 and 3).
constexpr double kSeparatedClassRelativeSd = 0.025;

// A busy GPU uses no less power than an idle one. Observations that contradict this contain outliers.
constexpr double kMinPlausibleBusyToIdlePowerRatio = 0.9;

bool identifies_any_class(const SeparableGroups& groups) {
  const auto is_known = [](double share) { return share >= kMinIdentifiedFraction; };
  return std::any_of(groups.identified_fractions.begin(), groups.identified_fractions.end() - 1, is_known);
}

// `watts` and `times_s` by class, idle last.
bool are_powers_plausible(std::span<const double> watts, std::span<const double> times_s) {
  double busy_j = 0;
  double busy_s = 0;
  for (std::size_t k = 0; k + 1 < watts.size(); ++k) {
    busy_j += watts[k] * times_s[k];
    busy_s += times_s[k];
  }
  return busy_j >= kMinPlausibleBusyToIdlePowerRatio * watts.back() * busy_s;
}

// The fit with one unknown per separable group.
class GroupedPowerFit {
 public:
  GroupedPowerFit(const PowerPrior& prior, double precision, const SeparableGroups& groups) : groups_(groups) {
    std::vector<std::size_t> members(groups.group_count);
    for (const std::size_t group : groups.group_by_unknown) ++members[group];
    // Known groups have a prior, too: otherwise the least identified ones would get 0 or more power than a GPU can use.
    group_priors_.assign(groups.group_count, {prior.busy_w, precision});
    idle_group_ = groups.group_by_unknown.back();
    const double idle_w = members[idle_group_] == 1 ? prior.idle_w : prior.busy_w;
    for (statistics::Prior& above_idle_prior : group_priors_)
      above_idle_prior.value = std::max(prior.busy_w - idle_w, 0.0);
    group_priors_[idle_group_].value = idle_w;
    for (const double share : groups.identified_fractions) is_identified_.push_back(share >= kMinIdentifiedFraction);
  }
  std::vector<double> solve(const statistics::NormalEquations& grouped) const {
    const std::vector<double> power_above_idle_w =
        statistics::nonnegative_least_squares(grouped.with_differences_from(idle_group_), group_priors_).x;
    std::vector<double> watts_by_unknown;
    for (const std::size_t group : groups_.group_by_unknown) {
      watts_by_unknown.push_back(power_above_idle_w[idle_group_] +
                                 (group == idle_group_ ? 0 : power_above_idle_w[group]));
    }
    return watts_by_unknown;
  }
  statistics::NormalEquations group_unknowns(const statistics::NormalEquations& sums) const {
    return sums.with_grouped_unknowns(groups_.group_by_unknown, groups_.group_count);
  }
  bool is_identified(std::size_t column) const { return is_identified_[column]; }

 private:
  const SeparableGroups& groups_;
  std::size_t idle_group_ =
      0;  // index of the group of idle; other groups are power above idle, which is never negative
  std::vector<statistics::Prior> group_priors_;
  std::vector<bool> is_identified_;
};

// The weights, with 0 for observations that overlap the probing.
std::vector<double> compute_weights_outside_probing(std::span<const TimeSpan> probing,
                                                    const UsablePowerEvidence& evidence, std::vector<double> weights,
                                                    std::int64_t lag_ns) {
  const std::size_t observed_count =
      std::min(weights.size(), evidence.observation_count());  // the rest: add_idle_power()
  for (std::size_t row = 0; row < observed_count; ++row) {
    const TimeSpan observation_span = evidence.observation_span(row);
    for (const TimeSpan& span : probing) {
      if (observation_span.end_ns - lag_ns > span.begin_ns && observation_span.begin_ns - lag_ns < span.end_ns)
        weights[row] = 0;
    }
  }
  return weights;
}

// By class: whether it is known without the probing as well.
std::vector<bool> find_classes_known_unprobed(std::span<const TimeSpan> probing, const UsablePowerEvidence& evidence,
                                              const IntervalObservations& observations, const RobustFit& fit,
                                              std::int64_t lag_ns) {
  std::vector<bool> is_known_unprobed(observations.column_count(), true);
  if (probing.empty()) return is_known_unprobed;
  const statistics::NormalEquations sums =
      observations.normal_equations(compute_weights_outside_probing(probing, evidence, fit.weights, lag_ns));
  const SeparableGroups groups =
      find_groups_with_sensor_uncertainty(sums, fit.prior_precision, observations.column_times_s(), {});
  for (std::size_t k = 0; k < is_known_unprobed.size(); ++k)
    is_known_unprobed[k] = groups.identified_fractions[k] >= kMinIdentifiedFraction;
  return is_known_unprobed;
}

// How to compute powers from the normal equations of observations, once it is known which classes are separable.
struct PowerSolver {
  std::function<statistics::NormalEquations(const statistics::NormalEquations&)> prepare_equations;
  std::function<std::vector<double>(const statistics::NormalEquations&)> solve;  // takes prepared sums
  std::function<std::vector<double>(Random&)>
      draw_perturbed_powers;                  // from all observations, with perturbed priors; or empty
  std::vector<double> relative_model_errors;  // by class: relative model error
  double effective_unknown_count = 0;         // effective number of unknowns that the data identify
};

PowerSolver make_group_solver(const GroupedPowerFit& fit, const SeparableGroups& groups) {
  PowerSolver power_solver{[&fit](const statistics::NormalEquations& sums) { return fit.group_unknowns(sums); },
                           [&fit](const statistics::NormalEquations& sums) { return fit.solve(sums); },
                           {},
                           {},
                           0};
  for (const double share : groups.data_fractions) power_solver.effective_unknown_count += share;
  for (std::size_t k = 0; k < groups.identified_fractions.size(); ++k) {
    power_solver.relative_model_errors.push_back(fit.is_identified(k) ? kSeparatedClassRelativeSd
                                                                      : kTimeSplitPowerRelativeSd);
  }
  return power_solver;
}

PowerSolver make_library_solver(const LibraryPriorFit& fit, const statistics::NormalEquations& sums) {
  PowerSolver power_solver{[](const statistics::NormalEquations& equations) { return equations; },
                           [&fit](const statistics::NormalEquations& equations) { return fit.solve(equations); },
                           [&fit, &sums](Random& random) { return fit.draw_replicate(sums, random); },
                           std::vector<double>(sums.size(), kSeparatedClassRelativeSd), 0};
  for (const double share : fit.data_fractions(sums)) power_solver.effective_unknown_count += share;
  return power_solver;
}

class PowerBootstrap {
 public:
  PowerBootstrap(const IntervalObservations& observations, const RobustFit& robust_fit, const PowerSolver& power_solver)
      : solver_(power_solver) {
    const std::size_t count =
        std::clamp<std::size_t>(observations.size() / kMinObservationsPerBlock, 2, kMaxBootstrapBlocks);
    for (std::size_t i = 0; i < count; ++i) {
      blocks_.push_back(power_solver.prepare_equations(observations.normal_equations(
          robust_fit.weights, i * observations.size() / count, (i + 1) * observations.size() / count)));
    }
  }

  // `watts`: the fitted powers. `lag_power_change_w`: their change per standard deviation of the lag. `sensor_changes`:
  // changes under alternative sensor models. Returns watts by class, then by replicate.
  std::vector<std::vector<double>> draw_replicates(const std::vector<double>& watts,
                                                   const std::vector<double>& lag_power_change_w,
                                                   const SensorModelReplicates& sensor_changes) {
    // A fit follows the noise of the blocks by its degrees of freedom, so errors look smaller than they are.
    const double blocks = static_cast<double>(blocks_.size());
    const double widening_factor = std::sqrt(blocks / std::max(blocks - solver_.effective_unknown_count, 1.0));
    std::vector<std::vector<double>> replicates_w(watts.size(), std::vector<double>(kPowerReplicateCount));
    for (std::size_t replicate = 0; replicate < kPowerReplicateCount; ++replicate) {
      statistics::NormalEquations sums(blocks_.front().size());
      for (const statistics::NormalEquations& block : blocks_) sums.add(block, random_.exponential());
      const std::vector<double> bootstrap_powers_w = solver_.solve(sums);
      const std::vector<double> perturbed_powers_w =
          solver_.draw_perturbed_powers ? solver_.draw_perturbed_powers(random_) : watts;
      const double lag = random_.normal();
      const std::span<const double> sensor_power_change_w = sensor_changes.draw_power_change(random_);
      for (std::size_t k = 0; k < watts.size(); ++k) {
        const double sd_w = solver_.relative_model_errors[k] * watts[k] * random_.normal();
        const double perturbation_w =
            perturbed_powers_w[k] - watts[k] + (sensor_power_change_w.empty() ? 0 : sensor_power_change_w[k]);
        replicates_w[k][replicate] = std::max(watts[k] + widening_factor * (bootstrap_powers_w[k] - watts[k]) +
                                                  lag * lag_power_change_w[k] + sd_w + perturbation_w,
                                              0.0);
      }
    }
    return replicates_w;
  }

 private:
  const PowerSolver& solver_;
  std::vector<statistics::NormalEquations> blocks_;
  Random random_{kReplicateSeed};
};

}  // namespace

std::pair<double, double> central_interval(std::vector<double> values, double share) {
  const double out = (1 - share) / 2 * static_cast<double>(values.size());
  const auto low = std::min(static_cast<std::size_t>(out), values.size() - 1);
  const std::size_t high = values.size() - 1 - low;
  const auto lower_value = values.begin() + static_cast<std::ptrdiff_t>(std::min(low, high));
  const auto upper_value = values.begin() + static_cast<std::ptrdiff_t>(std::max(low, high));
  std::nth_element(values.begin(), upper_value, values.end());
  std::nth_element(values.begin(), lower_value, upper_value);
  return {*lower_value, *upper_value};
}

double PowerFit::class_power_w(std::size_t column, double slowdown) const {
  const double full_speed_w = classes[column].watts;
  if (slowdown_exponent <= 0 || slowdown <= 1 || full_speed_w <= idle_power().watts) return full_speed_w;
  return idle_power().watts + (full_speed_w - idle_power().watts) * std::pow(slowdown, -slowdown_exponent);
}

void PowerFit::widen_gain_uncertainty(double additional_relative_sd) {
  const double widening_factor = add_in_quadrature(gain_spread, additional_relative_sd) / gain_spread;
  for (double& gain_replicate : gain_replicates) gain_replicate = 1 + widening_factor * (gain_replicate - 1);
}

PowerFit make_powers_from_priors(std::span<const KernelClassPrior> priors, double gain_spread) {
  PowerFit fit;
  fit.gain_spread = gain_spread;
  Random random(kReplicateSeed);
  double mean_w = 0;
  for (std::size_t k = 0; k + 1 < priors.size(); ++k)
    mean_w += priors[k].watts / static_cast<double>(priors.size() - 1);
  for (std::size_t k = 0; k < priors.size(); ++k) {
    const bool has_unknown_prior = priors[k].watts <= 0;
    const double watts = has_unknown_prior ? kDefaultIdleFraction * mean_w : priors[k].watts;
    const double relative_sd = has_unknown_prior ? kTimeSplitPowerRelativeSd
                                                 : add_in_quadrature(priors[k].relative_sd, kSeparatedClassRelativeSd);
    std::vector<double>& replicates_w = fit.power_replicates.emplace_back();
    for (std::size_t replicate = 0; replicate < kPowerReplicateCount; ++replicate)
      replicates_w.push_back(std::max(watts * (1 + relative_sd * random.normal()), 0.0));
    const auto [low, high] = central_interval(replicates_w, 0.9);
    fit.classes.push_back({watts, low, high, 0, false, false, k + 1 < priors.size() && priors[k].is_known});
  }
  for (std::size_t replicate = 0; replicate < kPowerReplicateCount; ++replicate)
    fit.gain_replicates.push_back(1 + gain_spread * random.normal());
  fit.separable_group_count = priors.size();
  return fit;
}

PowerFit make_equal_class_powers(std::size_t classes, double busy_w, const IdlePower& idle, double gain_spread) {
  PowerFit fit;
  fit.gain_spread = gain_spread;
  Random random(kReplicateSeed);
  for (std::size_t k = 0; k < classes + 1; ++k) {
    std::vector<double>& replicates_w = fit.power_replicates.emplace_back();
    const bool is_idle = k == classes;
    const double watts = is_idle ? idle.watts : busy_w;
    const double sd_w = is_idle ? idle.sd_w : kTimeSplitPowerRelativeSd * busy_w;
    for (std::size_t replicate = 0; replicate < kPowerReplicateCount; ++replicate)
      replicates_w.push_back(std::max(watts + sd_w * random.normal(), 0.0));
    const auto [low, high] = central_interval(replicates_w, 0.9);
    fit.classes.push_back({watts, low, high, 0, false, false});
  }
  for (std::size_t replicate = 0; replicate < kPowerReplicateCount; ++replicate)
    fit.gain_replicates.push_back(1 + gain_spread * random.normal());
  fit.separable_group_count = 1;
  return fit;
}

std::optional<PowerFit> fit_powers(const KernelTimeline& timeline, const PowerEvidence& evidence,
                                   std::span<const KernelClassPrior> priors) {
  if (timeline.empty()) return std::nullopt;
  const UsablePowerEvidence usable_evidence(timeline, evidence);
  if (usable_evidence.observation_count() < kMinNoiseObservations) return std::nullopt;
  SensorModelEstimate lag = find_sensor_model(usable_evidence, evidence.calibrated_sensor);
  if (evidence.is_throttled)
    lag.best_parameters.slowdown_exponent = find_slowdown_exponent(usable_evidence, lag.best_parameters);
  const IntervalObservations observations = usable_evidence.make_observations(lag.best_parameters);
  PowerPrior prior = fit_busy_and_idle_prior(observations);
  const bool is_prior_implausible = prior.busy_w < kMinPlausibleBusyToIdlePowerRatio * prior.idle_w;
  if (is_prior_implausible) prior = make_fallback_busy_and_idle_prior(priors, observations);
  const RobustFit robust_fit = fit_powers_robustly(observations, prior, 5);
  const statistics::NormalEquations sums = observations.normal_equations(robust_fit.weights);
  const std::vector<double> sensor_variance = sensor_model_uncertainty(lag.alternatives, prior.sd_w);
  const SeparableGroups groups = find_groups_with_sensor_uncertainty(sums, robust_fit.prior_precision,
                                                                     observations.column_times_s(), sensor_variance);
  const GroupedPowerFit grouped(prior, robust_fit.prior_precision, groups);
  const double redundancy_factor =
      redundancy_variance_factor(observations, is_prior_implausible ? std::vector<double>(observations.column_count())
                                                                    : groups.identified_fractions);
  const LibraryPriorFit library(priors, prior,
                                redundancy_factor * robust_fit.prior_precision * prior.sd_w * prior.sd_w);
  const bool has_library = !priors.empty();
  if (is_prior_implausible && !has_library && !identifies_any_class(groups)) return std::nullopt;
  PowerSolver power_solver = has_library ? make_library_solver(library, sums) : make_group_solver(grouped, groups);
  const auto solve_equations = [&](const statistics::NormalEquations& equations) {
    return power_solver.solve(power_solver.prepare_equations(equations));
  };
  const std::vector<double> watts = solve_equations(sums);
  if (is_prior_implausible && !has_library && !are_powers_plausible(watts, observations.column_times_s()))
    return std::nullopt;
  // A class at idle power or below is at a bound of the fit: the observations do not determine its power.
  for (std::size_t k = 0; k + 1 < watts.size(); ++k) {
    if (watts[k] <= watts.back()) power_solver.relative_model_errors[k] = kTimeSplitPowerRelativeSd;
  }
  const auto solve_powers_at_lag = [&](std::int64_t lag_ns) {
    return solve_equations(
        usable_evidence
            .make_observations({lag_ns, lag.best_parameters.time_constant_ns, lag.best_parameters.slowdown_exponent})
            .normal_equations(robust_fit.weights));
  };
  const std::vector<double> low_w = solve_powers_at_lag(lag.lag_low_ns);
  const std::vector<double> high_w = solve_powers_at_lag(lag.lag_high_ns);
  std::vector<double> lag_power_change_w;
  for (std::size_t k = 0; k < watts.size(); ++k)
    lag_power_change_w.push_back((high_w[k] - low_w[k]) / 2 / statistics::kNormalHalfWidth90);

  PowerFit fit;
  const SensorModelReplicates sensor_changes(lag.alternatives, solve_equations);
  fit.power_replicates =
      PowerBootstrap(observations, robust_fit, power_solver).draw_replicates(watts, lag_power_change_w, sensor_changes);
  const std::vector<bool> known_without_probing = find_classes_known_unprobed(
      evidence.probing_spans, usable_evidence, observations, robust_fit, lag.best_parameters.lag_ns);
  const std::vector<bool> prior_dominated =
      has_library ? is_prior_dominated(library, priors, sums) : std::vector<bool>();
  Random random(kReplicateSeed + 1);
  fit.gain_spread = evidence.calibrated_sensor.gain_spread;
  for (std::size_t replicate = 0; replicate < kPowerReplicateCount; ++replicate)
    fit.gain_replicates.push_back(1 + fit.gain_spread * random.normal());
  for (std::size_t k = 0; k < watts.size(); ++k) {
    std::vector<double> replicates_w = fit.power_replicates[k];
    for (std::size_t replicate = 0; replicate < kPowerReplicateCount; ++replicate)
      replicates_w[replicate] *= fit.gain_replicates[replicate];
    const auto [low, high] = central_interval(std::move(replicates_w), 0.9);
    const bool is_known =
        grouped.is_identified(k) && !(is_prior_implausible && has_library) && !(has_library && prior_dominated[k]);
    const bool is_from_library_entry = has_library && !is_known && k + 1 < priors.size() && priors[k].is_known;
    fit.classes.push_back({watts[k], low, high, groups.identified_fractions[k], is_known,
                           is_known && !known_without_probing[k], is_from_library_entry});
  }
  fit.lag_ns = lag.best_parameters.lag_ns;
  fit.time_constant_ns = lag.best_parameters.time_constant_ns;
  fit.slowdown_exponent = lag.best_parameters.slowdown_exponent;
  fit.counter_lag_ns =
      usable_evidence.is_from_gauge() ? evidence.calibrated_sensor.counter_lag_ns() : lag.best_parameters.lag_ns;
  fit.lag_low_ns = lag.lag_low_ns;
  fit.lag_high_ns = lag.lag_high_ns;
  fit.is_lag_identified = lag.is_identified;
  fit.residual_sd_j = robust_fit.noise_j;
  fit.observation_count =
      std::min(observations.size(), usable_evidence.observation_count());  // without those of add_idle_power()
  fit.separable_group_count = has_library ? sums.size() : groups.group_count;
  return fit;
}

}  // namespace joulemap::attribution
