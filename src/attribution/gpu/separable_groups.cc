// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/separable_groups.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace joulemap::attribution {
namespace {

// Two unknowns are confused if their errors correlate below this; otherwise each is simply weak. Merging with a known
// unknown needs a stronger negative correlation.
constexpr double kConfused = -0.1;
constexpr double kConfusedWithKnown = -0.5;

constexpr double kFreeLevel = 1e-4;
constexpr double kNoDifference = 1e-9;

struct Known {
  std::vector<double> inverse;
  std::vector<double> from_data;
};

Known known_from(const statistics::GramSums& sums, double pull) {
  const std::vector<statistics::Prior> priors(sums.size(), statistics::Prior{0, pull});
  Known known{statistics::posterior_inverse(sums, priors), {}};
  for (std::size_t i = 0; i < sums.size(); ++i)
    known.from_data.push_back(1 - pull * known.inverse[i * sums.size() + i]);
  return known;
}

SeparableGroups with_groups(const statistics::GramSums& sums, double pull, std::vector<std::size_t> group_of,
                            std::vector<double> alone) {
  const std::size_t count = 1 + *std::max_element(group_of.begin(), group_of.end());
  Known known = known_from(sums.grouped(group_of, count), pull);
  return {std::move(group_of), count, std::move(known.from_data), std::move(alone)};
}

// The pair whose errors are most anti-correlated, so that one gains what the other loses; at least one is unknown.
std::optional<std::pair<std::size_t, std::size_t>> most_confused(const Known& known, std::size_t idle) {
  const std::size_t size = known.from_data.size();
  const auto is_known = [&](std::size_t i) { return known.from_data[i] >= kKnownFromData; };
  std::optional<std::pair<std::size_t, std::size_t>> found;
  double worst = 0;
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = i + 1; j < size; ++j) {
      if (is_known(i) && is_known(j)) continue;
      if ((i == idle && is_known(i)) || (j == idle && is_known(j))) continue;
      const double alike =
          known.inverse[i * size + j] / std::sqrt(known.inverse[i * size + i] * known.inverse[j * size + j]);
      if (alike >= (is_known(i) || is_known(j) ? kConfusedWithKnown : kConfused) || alike >= worst) continue;
      worst = alike;
      found = {i, j};
    }
  }
  return found;
}

// The total power of all classes carries no information on their differences. So that level gets a weak prior, and this
// computes how much the data reduce the variance of each deviation from the mean.
std::vector<double> known_differences(const statistics::GramSums& sums, double pull, std::span<const double> times_s,
                                      const std::vector<double>& themselves) {
  const std::size_t classes = sums.size() - 1;
  std::vector<statistics::Prior> priors(sums.size() + 1, statistics::Prior{0, pull});
  priors.back().pull = pull * kFreeLevel;
  const std::vector<double> inverse = statistics::posterior_inverse(sums.with_common(classes), priors);
  double all_s = 0;
  for (std::size_t k = 0; k < classes; ++k) all_s += times_s[k];
  std::vector<double> known = themselves;
  for (std::size_t k = 0; k < classes && all_s > 0; ++k) {
    std::vector<double> difference(classes);
    for (std::size_t j = 0; j < classes; ++j) difference[j] = (j == k ? 1 : 0) - times_s[j] / all_s;
    double before = 0;
    double after = 0;
    for (std::size_t i = 0; i < classes; ++i) {
      before += difference[i] * difference[i] / pull;
      for (std::size_t j = 0; j < classes; ++j) after += difference[i] * difference[j] * inverse[i * priors.size() + j];
    }
    // A single class equals the mean and has no difference.
    if (before * pull > kNoDifference) known[k] = std::min(themselves[k], 1 - after / before);
  }
  return known;
}

}  // namespace

SeparableGroups separable_groups(const statistics::GramSums& sums, double pull, std::span<const double> times_s) {
  SeparableGroups result;
  for (std::size_t i = 0; i < sums.size(); ++i) result.group_of.push_back(i);
  result.groups = sums.size();
  Known known = known_from(sums, pull);
  result.alone = known_differences(sums, pull, times_s, known.from_data);
  while (const std::optional<std::pair<std::size_t, std::size_t>> pair =
             most_confused(known, result.group_of.empty() ? 0 : result.group_of.back())) {
    for (std::size_t& group : result.group_of) {
      if (group == pair->second) group = pair->first;
      if (group > pair->second) --group;
    }
    --result.groups;
    known = known_from(sums.grouped(result.group_of, result.groups), pull);
  }
  result.from_data = known.from_data;
  return result;
}

SeparableGroups sure_groups(const statistics::GramSums& sums, double pull, std::span<const double> times_s,
                            std::span<const double> doubts) {
  SeparableGroups found = separable_groups(sums, pull, times_s);
  const std::size_t classes = found.group_of.size() - 1;
  std::vector<bool> doubted(found.groups);
  bool any_known = false;
  for (std::size_t k = 0; k < found.alone.size() && !doubts.empty(); ++k) {
    const bool seemed_known = found.alone[k] >= kKnownFromData;
    found.alone[k] = std::max(found.alone[k] - doubts[k], 0.0);
    if (k < classes && seemed_known && found.alone[k] < kKnownFromData) doubted[found.group_of[k]] = true;
  }
  for (std::size_t k = 0; k < classes; ++k) any_known = any_known || found.alone[k] >= kKnownFromData;
  if (!any_known) {
    std::vector<std::size_t> together(classes + 1, 0);
    together.back() = found.alone.back() >= kKnownFromData ? 1 : 0;
    return with_groups(sums, pull, std::move(together), std::move(found.alone));
  }
  const auto first = std::find(doubted.begin(), doubted.end(), true);
  if (first == doubted.end()) return found;
  doubted[found.group_of.back()] = false;
  // Renumber groups in order of their first members.
  std::vector<std::size_t> number(found.groups + 1, found.groups + 1);
  std::size_t next = 0;
  std::vector<std::size_t> group_of;
  for (const std::size_t group : found.group_of) {
    std::size_t& its = number[doubted[group] ? found.groups : group];
    if (its > found.groups) its = next++;
    group_of.push_back(its);
  }
  return with_groups(sums, pull, std::move(group_of), std::move(found.alone));
}

}  // namespace joulemap::attribution
