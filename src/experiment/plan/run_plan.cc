// SPDX-License-Identifier: Apache-2.0
#include "experiment/plan/run_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "statistics/random.h"

namespace joulemap::experiment {
namespace {

constexpr std::size_t kMaxPlannedRows = 1'000'000;

bool is_excluded(const ExperimentSpec& spec, const std::vector<std::size_t>& levels) {
  return std::any_of(spec.exclusions.begin(), spec.exclusions.end(), [&](const Exclusion& exclusion) {
    for (std::size_t i = 0; i < levels.size(); ++i) {
      const std::vector<std::size_t>& excluded_levels = exclusion[i];
      if (!excluded_levels.empty() &&
          std::find(excluded_levels.begin(), excluded_levels.end(), levels[i]) == excluded_levels.end())
        return false;
    }
    return true;
  });
}

std::size_t count_level_combinations(const ExperimentSpec& spec) {
  std::size_t count = 1;
  for (const ExperimentFactor& factor : spec.factors) {
    count *= factor.levels.size();
    if (count > kMaxPlannedRows) return count;
  }
  return count;
}

}  // namespace

std::vector<std::vector<std::size_t>> list_planned_cells(const ExperimentSpec& spec) {
  std::vector<std::vector<std::size_t>> cells;
  const std::size_t count = count_level_combinations(spec);
  for (std::size_t number = 0; number < count; ++number) {
    std::vector<std::size_t> levels(spec.factors.size());
    std::size_t remaining_index = number;
    for (std::size_t i = spec.factors.size(); i-- > 0;) {
      levels[i] = remaining_index % spec.factors[i].levels.size();
      remaining_index /= spec.factors[i].levels.size();
    }
    if (!is_excluded(spec, levels)) cells.push_back(std::move(levels));
  }
  return cells;
}

Result<std::vector<PlannedRow>> plan_rows(const ExperimentSpec& spec) {
  if (count_level_combinations(spec) > kMaxPlannedRows) {
    return Error{ErrorCode::usage, fmt::format("the levels have more than {} combinations", kMaxPlannedRows),
                 "remove factors or levels"};
  }
  const std::vector<std::vector<std::size_t>> cells = list_planned_cells(spec);
  if (cells.empty()) return Error{ErrorCode::usage, "every combination of levels is excluded", "see [[exclude]]"};
  if (cells.size() * spec.repetitions > kMaxPlannedRows) {
    return Error{ErrorCode::usage,
                 fmt::format("{} cells of {} repetitions are more than {} rows", cells.size(), spec.repetitions,
                             kMaxPlannedRows),
                 "remove levels or repetitions"};
  }
  std::vector<PlannedRow> rows;
  for (std::size_t block = 0; block < spec.repetitions; ++block) {
    for (std::size_t cell = 0; cell < cells.size(); ++cell) rows.push_back({cell, block, cells[cell]});
  }
  statistics::Random random(spec.seed);
  const auto size = static_cast<std::ptrdiff_t>(cells.size());
  switch (spec.row_order) {
    case RowOrder::blocked_random:
      for (auto begin = rows.begin(); begin != rows.end(); begin += size) random.shuffle(begin, begin + size);
      break;
    case RowOrder::random:
      random.shuffle(rows.begin(), rows.end());
      break;
    case RowOrder::sequential:
      std::stable_sort(rows.begin(), rows.end(),
                       [](const PlannedRow& a, const PlannedRow& b) { return a.cell_index < b.cell_index; });
      break;
    case RowOrder::blocked:
      break;
  }
  return rows;
}

}  // namespace joulemap::experiment
