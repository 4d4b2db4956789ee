// SPDX-License-Identifier: Apache-2.0
#include "experiment/analysis/pareto.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "experiment/analysis/parallel_for.h"
#include "statistics/bootstrap.h"
#include "statistics/correlation.h"
#include "statistics/random.h"

namespace joulemap::experiment {
namespace {

// Limit on pairwise cell comparisons per set: sets of hundreds of cells get fewer resamples.
constexpr double kMaxCellComparisons = 1e8;
constexpr std::size_t kMinParetoResamples = 100;
constexpr std::size_t kMinAssociationPairs = 3;  // minimum n of an association

// Values of one row of a cell, with signs such that less is better.
using RowCosts = std::vector<double>;

struct ParetoCandidate {
  std::size_t cell = 0;
  std::vector<RowCosts> row_costs;
  RowCosts mean_costs;
};

RowCosts mean_costs_of_rows(const ParetoCandidate& candidate) {
  RowCosts mean(candidate.row_costs.front().size());
  for (const RowCosts& row : candidate.row_costs) {
    for (std::size_t i = 0; i < row.size(); ++i) mean[i] += row[i];
  }
  for (double& value : mean) value /= static_cast<double>(candidate.row_costs.size());
  return mean;
}

RowCosts resample_mean_costs(const ParetoCandidate& candidate, statistics::Random& random) {
  const auto n = static_cast<double>(candidate.row_costs.size());
  RowCosts mean(candidate.row_costs.front().size());
  for (std::size_t draw = 0; draw < candidate.row_costs.size(); ++draw) {
    const RowCosts& row =
        candidate.row_costs[std::min(static_cast<std::size_t>(random.uniform() * n), candidate.row_costs.size() - 1)];
    for (std::size_t i = 0; i < row.size(); ++i) mean[i] += row[i];
  }
  for (double& value : mean) value /= n;
  return mean;
}

// Pareto dominance: not worse in any value and better in at least one.
bool pareto_dominates(const RowCosts& left_costs, const RowCosts& right_costs) {
  bool is_better = false;
  for (std::size_t i = 0; i < left_costs.size(); ++i) {
    if (left_costs[i] > right_costs[i]) return false;
    is_better = is_better || left_costs[i] < right_costs[i];
  }
  return is_better;
}

std::vector<bool> find_pareto_front(const std::vector<RowCosts>& points) {
  std::vector<bool> is_on_front(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    is_on_front[i] = std::none_of(points.begin(), points.end(), [&](const RowCosts& other_costs) {
      return pareto_dominates(other_costs, points[i]);
    });
  }
  return is_on_front;
}

// Energy, time and metrics that differ between rows; domains are left out because they are part of the energy.
std::vector<std::size_t> find_compared_measures(const ExperimentTable& table) {
  std::vector<std::size_t> compared_measures;
  for (std::size_t i = 0; i < table.measures.size(); ++i) {
    if (table.measures[i].kind == MeasureKind::domain || !table.measures[i].is_compared) continue;
    std::optional<double> previous_cost;
    bool is_any_cost_different = false;
    for (const auto& row : table.values_by_row) {
      if (!row[i]) continue;
      is_any_cost_different = is_any_cost_different || (previous_cost && *row[i] != *previous_cost);
      previous_cost = row[i];
    }
    if (is_any_cost_different) compared_measures.push_back(i);
  }
  return compared_measures;
}

std::vector<ParetoCandidate> make_pareto_candidates(const ExperimentTable& table, const std::vector<std::size_t>& cells,
                                                    const std::vector<std::size_t>& measures) {
  std::vector<ParetoCandidate> candidates;
  for (const std::size_t cell : cells) {
    ParetoCandidate candidate;
    candidate.cell = cell;
    for (const std::size_t row : table.cells[cell].done_rows) {
      RowCosts costs;
      for (const std::size_t measure : measures) {
        const std::optional<double> value = table.values_by_row[row][measure];
        if (value) costs.push_back(table.measures[measure].more_is_better ? -*value : *value);
      }
      if (costs.size() == measures.size()) candidate.row_costs.push_back(std::move(costs));
    }
    if (candidate.row_costs.empty()) continue;
    candidate.mean_costs = mean_costs_of_rows(candidate);
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

void estimate_pareto_probabilities(ParetoSet& set, const std::vector<ParetoCandidate>& candidates,
                                   std::size_t resamples, std::uint64_t seed) {
  std::vector<RowCosts> points;
  points.reserve(candidates.size());
  for (const ParetoCandidate& candidate : candidates) points.push_back(candidate.mean_costs);
  const std::vector<bool> is_on_front = find_pareto_front(points);
  const auto count = static_cast<double>(candidates.size());
  const auto max_affordable_resamples = static_cast<std::size_t>(kMaxCellComparisons / (count * count));
  set.resamples = std::min(resamples, std::max(max_affordable_resamples, kMinParetoResamples));
  std::vector<std::size_t> times(candidates.size());
  statistics::Random random(seed);
  for (std::size_t resample = 0; resample < set.resamples; ++resample) {
    for (std::size_t i = 0; i < candidates.size(); ++i) points[i] = resample_mean_costs(candidates[i], random);
    const std::vector<bool> resample_front = find_pareto_front(points);
    for (std::size_t i = 0; i < candidates.size(); ++i) times[i] += resample_front[i] ? 1 : 0;
  }
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const double share = set.resamples > 0 ? static_cast<double>(times[i]) / static_cast<double>(set.resamples) : 0;
    set.points.push_back({candidates[i].cell, is_on_front[i], share});
  }
}

Association rank_association(const std::vector<double>& x, const std::vector<double>& y) {
  Association result;
  result.n = x.size();
  if (x.size() < kMinAssociationPairs) return result;
  if (const auto spearman = statistics::spearman(x, y)) {
    result.spearman = spearman->statistic;
    result.spearman_p = spearman->p;
  }
  if (const auto kendall = statistics::kendall(x, y)) {
    result.kendall = kendall->statistic;
    result.kendall_p = kendall->p;
  }
  return result;
}

}  // namespace

std::vector<ParetoSet> find_pareto_sets(const ExperimentData& data, const ExperimentTable& table,
                                        const ParetoOptions& options) {
  const std::vector<std::size_t> measures = find_compared_measures(table);
  if (measures.size() < 2) return {};
  std::map<std::vector<std::optional<std::size_t>>, std::vector<std::size_t>> groups;
  for (std::size_t cell = 0; cell < table.cells.size(); ++cell) {
    std::vector<std::optional<std::size_t>> fixed_levels(table.cells[cell].level_indices.begin(),
                                                         table.cells[cell].level_indices.end());
    for (const std::size_t factor : options.factors) fixed_levels[factor].reset();
    groups[fixed_levels].push_back(cell);
  }
  std::vector<ParetoSet> sets;
  std::vector<std::vector<ParetoCandidate>> candidates;
  for (const auto& [fixed_levels, cells] : groups) {
    std::vector<ParetoCandidate> group_candidates = make_pareto_candidates(table, cells, measures);
    if (group_candidates.size() < 2) continue;
    sets.push_back({fixed_levels, measures, 0, {}});
    candidates.push_back(std::move(group_candidates));
  }
  parallel_for(sets.size(), options.thread_count, [&](std::size_t i) {
    estimate_pareto_probabilities(sets[i], candidates[i], options.resample_count,
                                  statistics::bootstrap_cell_seed(data.seed ^ options.random_seed, i));
  });
  return sets;
}

std::vector<Association> compute_associations(const ExperimentTable& table, unsigned threads) {
  std::optional<std::size_t> energy;
  std::optional<std::size_t> time;
  for (std::size_t i = 0; i < table.measures.size(); ++i) {
    if (table.measures[i].kind == MeasureKind::energy) energy = i;
    if (table.measures[i].kind == MeasureKind::time) time = i;
  }
  if (!energy || !time) return {};
  std::vector<Association> associations(table.cells.size() + 1);
  std::vector<std::optional<std::pair<double, double>>> medians(table.cells.size());
  parallel_for(table.cells.size(), threads, [&](std::size_t cell) {
    std::vector<double> x;
    std::vector<double> y;
    for (const std::size_t row : table.cells[cell].done_rows) {
      if (!table.values_by_row[row][*energy] || !table.values_by_row[row][*time]) continue;
      x.push_back(*table.values_by_row[row][*energy]);
      y.push_back(*table.values_by_row[row][*time]);
    }
    associations[cell] = rank_association(x, y);
    associations[cell].cell = cell;
    if (!x.empty()) medians[cell] = {statistics::median_of(x), statistics::median_of(y)};
  });
  std::vector<double> x;
  std::vector<double> y;
  for (const auto& median : medians) {
    if (!median) continue;
    x.push_back(median->first);
    y.push_back(median->second);
  }
  associations.back() = rank_association(x, y);
  for (Association& association : associations) {
    association.x = *energy;
    association.y = *time;
  }
  std::erase_if(associations, [](const Association& association) { return association.n < kMinAssociationPairs; });
  return associations;
}

}  // namespace joulemap::experiment
