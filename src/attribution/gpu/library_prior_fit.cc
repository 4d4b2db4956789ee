// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/library_prior_fit.h"

#include <algorithm>

#include "attribution/gpu/separable_groups.h"

namespace joulemap::attribution {
namespace {

// Relative spread of the level: cards of one model, clocks and temperature change all powers together.
constexpr double kCardPowerLevelRelativeSd = 0.1;

}  // namespace

LibraryPriorFit::LibraryPriorFit(std::span<const KernelClassPrior> priors, const PowerPrior& prior, double noise)
    : idle_w_(prior.idle_w), level_precision_(noise / (kCardPowerLevelRelativeSd * kCardPowerLevelRelativeSd)) {
  if (priors.empty()) return;
  for (const KernelClassPrior& class_prior : priors) {
    prior_watts_.push_back(class_prior.watts);
    prior_sd_w_.push_back(class_prior.relative_sd * class_prior.watts);
  }
  // Idle power does not scale with the level of the kernel powers.
  if (priors.back().is_known) idle_w_ = priors.back().watts;
  if (!priors.back().is_known) prior_sd_w_.back() = prior.sd_w;
  prior_watts_.back() = 0;
  for (const double sd_w : prior_sd_w_) prior_precisions_.push_back(noise / (sd_w * sd_w));
}

// With the level as one more unknown, the class unknowns are deviations from the prior at that level.
std::vector<statistics::Prior> LibraryPriorFit::make_deviation_priors(std::span<const double> perturbed_w) const {
  std::vector<statistics::Prior> priors;
  for (std::size_t k = 0; k < prior_precisions_.size(); ++k)
    priors.push_back({perturbed_w.empty() ? 0 : perturbed_w[k], prior_precisions_[k]});
  priors.back().value += idle_w_;
  priors.push_back({1, level_precision_});
  return priors;
}

std::vector<double> LibraryPriorFit::solve(const statistics::NormalEquations& sums,
                                           std::span<const double> perturbed_w) const {
  std::vector<statistics::Prior> priors = make_deviation_priors(perturbed_w);
  const double level = statistics::least_squares(sums.with_weighted_sum_unknown(prior_watts_), priors).back();
  priors.pop_back();
  for (std::size_t k = 0; k + 1 < priors.size(); ++k) priors[k].value += level * prior_watts_[k];
  return statistics::nonnegative_least_squares(sums, priors).x;
}

std::vector<double> LibraryPriorFit::solve(const statistics::NormalEquations& sums) const { return solve(sums, {}); }

std::vector<double> LibraryPriorFit::draw_replicate(const statistics::NormalEquations& sums,
                                                    statistics::Random& random) const {
  std::vector<double> perturbed_w;
  for (const double sd_w : prior_sd_w_) perturbed_w.push_back(sd_w * random.normal());
  return solve(sums, perturbed_w);
}

std::vector<double> LibraryPriorFit::data_fractions(const statistics::NormalEquations& sums) const {
  const std::vector<statistics::Prior> priors = make_deviation_priors({});
  const std::vector<double> unscaled_covariance =
      statistics::unscaled_posterior_covariance(sums.with_weighted_sum_unknown(prior_watts_), priors);
  std::vector<double> shares;
  for (std::size_t k = 0; k < prior_precisions_.size(); ++k) {
    shares.push_back(1 - prior_precisions_[k] * unscaled_covariance[k * priors.size() + k]);
  }
  return shares;
}

PowerPrior make_fallback_busy_and_idle_prior(std::span<const KernelClassPrior> priors,
                                             const IntervalObservations& observations) {
  if (priors.empty()) {
    const double mean_w = mean_power_w(observations);
    return {mean_w, kDefaultIdleFraction * mean_w, mean_w / 2};
  }
  const std::vector<double> column_times_s = observations.column_times_s();
  double busy_j = 0;
  double busy_s = 0;
  for (std::size_t k = 0; k + 1 < priors.size(); ++k) {
    busy_j += column_times_s[k] * priors[k].watts;
    busy_s += column_times_s[k];
  }
  const double busy_w = busy_s > 0 ? busy_j / busy_s : 0;
  return {busy_w, priors.back().is_known ? priors.back().watts : kDefaultIdleFraction * busy_w, busy_w / 2};
}

double redundancy_variance_factor(const IntervalObservations& observations,
                                  std::span<const double> identified_fractions) {
  const std::vector<double> column_times_s = observations.column_times_s();
  double identified_s = 0;
  double total_time_s = 0;
  for (std::size_t k = 0; k + 1 < column_times_s.size(); ++k) {
    total_time_s += column_times_s[k];
    if (identified_fractions[k] >= kMinIdentifiedFraction) identified_s += column_times_s[k];
  }
  const double identified_fraction = total_time_s > 0 ? identified_s / total_time_s : 0;
  const double count = static_cast<double>(observations.size());
  return count / std::max(count * identified_fraction * identified_fraction, 1.0);
}

std::vector<bool> is_prior_dominated(const LibraryPriorFit& library, std::span<const KernelClassPrior> priors,
                                     const statistics::NormalEquations& sums) {
  std::vector<bool> prior_dominated;
  const std::vector<double> data_fractions = library.data_fractions(sums);
  for (std::size_t k = 0; k < data_fractions.size(); ++k) {
    prior_dominated.push_back(k + 1 < priors.size() && priors[k].is_known && data_fractions[k] < 0.5);
  }
  return prior_dominated;
}

}  // namespace joulemap::attribution
