// SPDX-License-Identifier: Apache-2.0
#include "experiment/analysis/comparisons.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "experiment/analysis/cell_groups.h"
#include "experiment/analysis/parallel_for.h"
#include "statistics/effect_size.h"
#include "statistics/rank_tests.h"
#include "statistics/sample_size.h"

namespace joulemap::experiment {
namespace {

// The intervals of the difference and of the percentage use the same ranks, so they have the same confidence.
void set_location_shift(Comparison& comparison, const std::optional<statistics::EffectEstimate>& shift,
                        const std::optional<statistics::EffectEstimate>& percent) {
  if (shift) {
    comparison.difference = shift->estimate;
    comparison.low = shift->low;
    comparison.high = shift->high;
    comparison.confidence = shift->confidence;
  }
  if (percent) {
    comparison.percent = percent->estimate;
    comparison.percent_low = percent->low;
    comparison.percent_high = percent->high;
  }
}

void compare_two_levels(Comparison& comparison, const std::vector<double>& values_a,
                        const std::vector<double>& values_b, double confidence) {
  const bool is_paired = comparison.pairing == Pairing::paired;
  comparison.test = is_paired ? "wilcoxon-signed-rank" : "mann-whitney";
  comparison.row_count_a = values_a.size();
  comparison.row_count_b = values_b.size();
  if (values_a.size() < 2 || values_b.size() < 2) return;
  const statistics::TestResult test =
      is_paired ? statistics::signed_rank_test(values_a, values_b) : statistics::rank_sum_test(values_a, values_b);
  comparison.p = test.p;
  comparison.statistic = test.statistic;
  comparison.is_exact = test.p_value_method == statistics::PValueMethod::exact;
  comparison.vargha_delaney_a12 = statistics::vargha_delaney_a12(values_a, values_b);
  comparison.cliffs_delta = 2 * *comparison.vargha_delaney_a12 - 1;
  if (const std::optional<statistics::EffectEstimate> a12_estimate =
          statistics::a12_interval(values_a, values_b, confidence)) {
    comparison.a12_low = a12_estimate->low;
    comparison.a12_high = a12_estimate->high;
  }
  if (is_paired) {
    set_location_shift(comparison, statistics::paired_shift(values_a, values_b, confidence),
                       statistics::paired_percent(values_a, values_b, confidence));
  } else {
    set_location_shift(comparison, statistics::unpaired_shift(values_a, values_b, confidence),
                       statistics::unpaired_percent(values_a, values_b, confidence));
  }
}

void compare_all_levels(Comparison& comparison, const std::vector<std::vector<double>>& values_by_level) {
  const bool is_paired = comparison.pairing == Pairing::paired;
  comparison.test = is_paired ? "friedman" : "kruskal-wallis";
  comparison.is_exact = false;
  std::size_t min_value_count = std::numeric_limits<std::size_t>::max();
  for (const std::vector<double>& level_values : values_by_level) {
    comparison.row_count_a += level_values.size();
    min_value_count = std::min(min_value_count, level_values.size());
  }
  comparison.row_count_b = comparison.row_count_a;
  if (min_value_count < 2) return;
  std::vector<std::vector<double>> blocks(is_paired ? min_value_count : 0);
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    for (const std::vector<double>& level_values : values_by_level) blocks[block].push_back(level_values[block]);
  }
  const statistics::TestResult test =
      is_paired ? statistics::friedman_test(blocks) : statistics::kruskal_wallis_test(values_by_level);
  comparison.p = test.p;
  comparison.statistic = test.statistic;
}

// A test to run, and the cells that it compares.
struct ComparisonTask {
  Comparison comparison;
  std::vector<std::size_t> cells;
};

void add_comparison_tasks(const CellGroup& group, std::size_t measure, Pairing pairing,
                          std::vector<ComparisonTask>& tasks) {
  std::vector<std::size_t> levels;
  std::vector<std::size_t> cells;
  for (std::size_t level = 0; level < group.cells.size(); ++level) {
    if (!group.cells[level]) continue;
    levels.push_back(level);
    cells.push_back(*group.cells[level]);
  }
  Comparison comparison;
  comparison.factor = group.factor;
  comparison.fixed_levels = group.fixed_levels;
  comparison.measure = measure;
  comparison.pairing = pairing;
  if (levels.size() > 2) tasks.push_back({comparison, cells});
  for (std::size_t index_a = 0; index_a < levels.size(); ++index_a) {
    for (std::size_t index_b = index_a + 1; index_b < levels.size(); ++index_b) {
      comparison.a = levels[index_a];
      comparison.b = levels[index_b];
      tasks.push_back({comparison, {cells[index_a], cells[index_b]}});
    }
  }
}

void run_comparison_task(ComparisonTask& task, const ExperimentData& data, const ExperimentTable& table,
                         double confidence) {
  Comparison& comparison = task.comparison;
  std::vector<std::vector<double>> values_by_level;
  if (comparison.pairing == Pairing::paired) {
    values_by_level = values_in_common_blocks(data, table, task.cells, comparison.measure);
  } else {
    for (const std::size_t cell : task.cells)
      values_by_level.push_back(table.measure_values_of_cell(table.cells[cell], comparison.measure));
  }
  if (comparison.a) {
    compare_two_levels(comparison, values_by_level[0], values_by_level[1], confidence);
  } else {
    compare_all_levels(comparison, values_by_level);
  }
}

// Whether every row of a cell has its own repetition index; otherwise rows cannot be paired.
bool has_repetitions(const ExperimentData& data, const ExperimentTable& table) {
  return std::all_of(table.cells.begin(), table.cells.end(), [&](const CellRows& cell) {
    std::set<std::size_t> blocks;
    for (const std::size_t row : cell.done_rows) blocks.insert(data.rows[row].block);
    return blocks.size() == cell.done_rows.size();
  });
}

void adjust_p_values(std::vector<Comparison>& comparisons, const ComparisonOptions& options) {
  std::map<std::tuple<std::size_t, Pairing, bool>, std::vector<std::size_t>> families;
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const Comparison& comparison = comparisons[i];
    if (comparison.p) families[{comparison.factor, comparison.pairing, comparison.a.has_value()}].push_back(i);
  }
  for (const auto& [key, members] : families) {
    std::vector<double> p;
    for (const std::size_t i : members) p.push_back(*comparisons[i].p);
    const std::vector<double> adjusted_p_values = statistics::adjusted_p_values(p, options.adjustment);
    const auto pairing =
        std::get<1>(key) == Pairing::paired ? statistics::Pairing::paired : statistics::Pairing::unpaired;
    const std::size_t min_rows_per_level =
        statistics::min_repetitions(pairing, options.significance_level, members.size());
    for (std::size_t k = 0; k < members.size(); ++k) {
      Comparison& comparison = comparisons[members[k]];
      comparison.p_adjusted = adjusted_p_values[k];
      comparison.family_size = members.size();
      comparison.is_different = adjusted_p_values[k] < options.significance_level;
      if (comparison.a) comparison.min_rows_per_level = min_rows_per_level;
    }
  }
}

}  // namespace

std::vector<Comparison> compare_levels(const ExperimentData& data, const ExperimentTable& table,
                                       const ComparisonOptions& options) {
  std::vector<Pairing> pairings;
  if (data.is_blocked || has_repetitions(data, table)) pairings.push_back(Pairing::paired);
  if (!data.is_blocked) pairings.push_back(Pairing::unpaired);
  std::vector<ComparisonTask> tasks;
  for (const std::size_t factor : options.factors) {
    for (const CellGroup& group : group_cells_by_other_factors(data, table, factor)) {
      for (std::size_t measure = 0; measure < table.measures.size(); ++measure) {
        if (!table.measures[measure].is_compared) continue;
        for (const Pairing pairing : pairings) add_comparison_tasks(group, measure, pairing, tasks);
      }
    }
  }
  parallel_for(tasks.size(), options.thread_count,
               [&](std::size_t i) { run_comparison_task(tasks[i], data, table, 1 - options.significance_level); });
  std::vector<Comparison> comparisons;
  comparisons.reserve(tasks.size());
  for (ComparisonTask& task : tasks) comparisons.push_back(std::move(task.comparison));
  adjust_p_values(comparisons, options);
  return comparisons;
}

}  // namespace joulemap::experiment
