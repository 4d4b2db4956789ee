// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/library_fit.h"

#include <algorithm>

#include "attribution/gpu/separable_groups.h"

namespace joulemap::attribution {
namespace {

// Relative spread of the level: cards of one model, clocks and temperature change all powers together.
constexpr double kLevelSpread = 0.1;

}  // namespace

LibraryFit::LibraryFit(std::span<const ClassPrior> priors, const PowerPrior& prior, double noise)
    : idle_w_(prior.idle_w), level_pull_(noise / (kLevelSpread * kLevelSpread)) {
  if (priors.empty()) return;
  for (const ClassPrior& one : priors) {
    watts_.push_back(one.watts);
    spread_w_.push_back(one.spread * one.watts);
  }
  // Idle power does not scale with the level of the kernel powers.
  if (priors.back().known) idle_w_ = priors.back().watts;
  if (!priors.back().known) spread_w_.back() = prior.spread_w;
  watts_.back() = 0;
  for (const double spread_w : spread_w_) pulls_.push_back(noise / (spread_w * spread_w));
}

// With the level as one more unknown, the class unknowns are deviations from the prior at that level.
std::vector<statistics::Prior> LibraryFit::differences(std::span<const double> moved_w) const {
  std::vector<statistics::Prior> priors;
  for (std::size_t k = 0; k < pulls_.size(); ++k) priors.push_back({moved_w.empty() ? 0 : moved_w[k], pulls_[k]});
  priors.back().value += idle_w_;
  priors.push_back({1, level_pull_});
  return priors;
}

std::vector<double> LibraryFit::solve(const statistics::GramSums& sums, std::span<const double> moved_w) const {
  std::vector<statistics::Prior> priors = differences(moved_w);
  const double level = statistics::least_squares(sums.with_combination(watts_), priors).back();
  priors.pop_back();
  for (std::size_t k = 0; k + 1 < priors.size(); ++k) priors[k].value += level * watts_[k];
  return statistics::nonnegative_least_squares(sums, priors).x;
}

std::vector<double> LibraryFit::solve(const statistics::GramSums& sums) const { return solve(sums, {}); }

std::vector<double> LibraryFit::draw(const statistics::GramSums& sums, statistics::Random& random) const {
  std::vector<double> moved_w;
  for (const double spread_w : spread_w_) moved_w.push_back(spread_w * random.normal());
  return solve(sums, moved_w);
}

std::vector<double> LibraryFit::from_data(const statistics::GramSums& sums) const {
  const std::vector<statistics::Prior> priors = differences({});
  const std::vector<double> inverse = statistics::posterior_inverse(sums.with_combination(watts_), priors);
  std::vector<double> shares;
  for (std::size_t k = 0; k < pulls_.size(); ++k) {
    shares.push_back(1 - pulls_[k] * inverse[k * priors.size() + k]);
  }
  return shares;
}

PowerPrior fallback_coarse_prior(std::span<const ClassPrior> priors, const IntervalObservations& rows) {
  if (priors.empty()) {
    const double mean_w = mean_power(rows);
    return {mean_w, kUsualIdle * mean_w, mean_w / 2};
  }
  const std::vector<double> times_s = rows.times_s();
  double busy_j = 0;
  double busy_s = 0;
  for (std::size_t k = 0; k + 1 < priors.size(); ++k) {
    busy_j += times_s[k] * priors[k].watts;
    busy_s += times_s[k];
  }
  const double busy_w = busy_s > 0 ? busy_j / busy_s : 0;
  return {busy_w, priors.back().known ? priors.back().watts : kUsualIdle * busy_w, busy_w / 2};
}

double repeats_of(const IntervalObservations& rows, std::span<const double> alone) {
  const std::vector<double> times_s = rows.times_s();
  double told_s = 0;
  double all_s = 0;
  for (std::size_t k = 0; k + 1 < times_s.size(); ++k) {
    all_s += times_s[k];
    if (alone[k] >= kKnownFromData) told_s += times_s[k];
  }
  const double told = all_s > 0 ? told_s / all_s : 0;
  const double count = static_cast<double>(rows.size());
  return count / std::max(count * told * told, 1.0);
}

std::vector<bool> is_prior_dominated(const LibraryFit& library, std::span<const ClassPrior> priors,
                                     const statistics::GramSums& sums) {
  std::vector<bool> believed;
  const std::vector<double> from_data = library.from_data(sums);
  for (std::size_t k = 0; k < from_data.size(); ++k) {
    believed.push_back(k + 1 < priors.size() && priors[k].known && from_data[k] < 0.5);
  }
  return believed;
}

}  // namespace joulemap::attribution
