// SPDX-License-Identifier: Apache-2.0
//
// AnalysisResult: the results of an experiment and the caveats that limit them. `experiment/analysis/analyze.h`
// computes it from ExperimentData; reports print it (docs/explanation/statistics.md). Plain data; joules, seconds,
// fractions of 1.
//
// A row is one execution of a cell, and a cell is a combination of one level of each factor. A measure is a number of a
// row: "energy_j", "time_s", the sum over the domains of one kind ("package", "dram", "gpu"), or a metric of the
// experiment ("accuracy"). "energy_j" sums the counted domains of one provenance that all rows have.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/diagnostics.h"
#include "model/experiment_data.h"
#include "model/function_result.h"

namespace joulemap {

// A property of the data that the reader must see before the numbers.
struct AnalysisFlag {
  std::string code;                    // machine-readable: "warm_up"
  std::string message;                 // human-readable
  std::string remedy;                  // empty when there is none
  std::optional<std::size_t> measure;  // of a cell: index of the measure; none if the flag concerns the cell
};

enum class MeasureKind { energy, time, domain, metric };

struct Measure {
  std::string name;  // "energy_j", "time_s", "gpu", "accuracy"
  MeasureKind kind = MeasureKind::energy;
  std::string unit;  // "J", "s", or the unit of the metric
  bool more_is_better = false;
  bool is_compared = true;                         // false: displayed only, part of no comparison
  std::optional<Provenance> provenance = {};       // of an energy; none for time and metrics
  std::vector<std::string> domains = {};           // domains in the sum; empty: the rows have no domain in common
  std::vector<std::string> excluded_domains = {};  // domains that only some rows have, excluded from the sum
  bool is_estimated() const { return provenance == Provenance::estimated; }
};

// The values of one measure in one cell.
struct MeasureSummary {
  std::vector<double> values;  // in execution order, of the rows that have a value
  double mean = 0;
  double median = 0;
  std::optional<double> low;   // low, high: BCa bootstrap interval of the mean, confidence 1 - alpha
  std::optional<double> high;  // like the standard deviation, none with fewer than two values
  std::optional<double> standard_deviation;
  std::vector<std::size_t> outliers;  // indices into `values`; flagged, never dropped
};

// Energy (J) and time (s) of an epoch: means over the rows of a cell. The first epoch is separate because it contains
// one-time work.
struct EpochSummary {
  std::size_t epochs = 0;  // maximum over the rows
  std::optional<double> first_j;
  std::optional<double> later_j;  // mean of the epochs after the first
  std::optional<double> first_s;
  std::optional<double> later_s;
};

// One epoch of a cell: means over the rows that have it.
struct EpochMean {
  std::size_t number = 1;
  std::size_t n = 0;  // number of rows
  std::optional<double> energy_j;
  std::optional<double> time_s;
  std::optional<double> power_w;
  std::vector<std::optional<double>> values;  // same order as AnalysisResult::epoch_columns
};

// A gauge (kGauges) or metric that epochs have.
struct EpochColumn {
  std::string name;
  std::string unit;
};

struct AnalysisCell {
  std::vector<std::size_t> levels;                      // one index into each factor's levels
  std::size_t rows = 0;                                 // number of planned rows
  std::size_t n = 0;                                    // number of rows done
  std::vector<std::optional<MeasureSummary>> measures;  // same order as AnalysisResult::measures
  std::optional<EpochSummary> epochs;
  std::vector<EpochMean> epoch_means;
  std::vector<CellFunctionMean> functions;  // in descending order of energy; empty when no row was traced
  std::vector<AnalysisFlag> flags;
};

enum class Pairing { paired, unpaired };

// One test between the levels `a` and `b` of a factor, or an omnibus test over all levels of a factor with more than
// two (`a` and `b` are then none).
struct Comparison {
  std::size_t factor = 0;
  std::optional<std::size_t> a;  // indices of levels of the factor
  std::optional<std::size_t> b;
  std::vector<std::optional<std::size_t>> fixed_levels;  // by factor: its level in both cells; none: compared factor
  std::size_t measure = 0;
  Pairing pairing = Pairing::paired;
  std::string test;  // "wilcoxon-signed-rank", "mann-whitney", "friedman", "kruskal-wallis"
  bool is_exact = true;
  std::size_t row_count_a = 0;  // rows of level a; paired: number of pairs; omnibus test: rows of all levels
  std::size_t row_count_b = 0;
  std::optional<double> p;           // none when the data do not allow the test; `verdict` gives the reason
  std::optional<double> p_adjusted;  // for the family: tests with this factor, pairing and kind (two levels or omnibus)
  std::size_t family_size = 0;       // number of tests in the family
  std::optional<double> statistic;
  std::optional<double> vargha_delaney_a12;  // P(a > b) + P(a = b) / 2
  std::optional<double> a12_low;             // interval of A12 for independent groups, even when the rows are paired
  std::optional<double> a12_high;
  std::optional<double> cliffs_delta;  // 2 A12 - 1
  std::optional<double> difference;    // Hodges-Lehmann estimate of a - b in the measure's unit; low, high: interval
  std::optional<double> low;
  std::optional<double> high;
  std::optional<double> percent;  // 100 (a / b - 1), by the Hodges-Lehmann estimate of the log ratio
  std::optional<double> percent_low;
  std::optional<double> percent_high;
  std::optional<double> confidence;  // of both intervals; less than 1 - alpha where there are too few rows
  std::optional<std::size_t>
      min_rows_per_level;     // least rows per level (or pairs) for p_adjusted < alpha in this family
  bool is_different = false;  // p_adjusted < alpha
  std::string verdict;        // human-readable
};

// What the effect of a factor is over all combinations of the other factors' levels.
enum class EffectGenerality {
  same_direction,     // the effect is shown, and combinations agree on its direction
  direction_differs,  // combinations differ in direction, so that no overall effect is claimed
  not_shown,
  levels_differ,  // test over all levels: they differ in these combinations, which says nothing about others
};
constexpr std::string_view name_of(EffectGenerality generality) {
  return std::array<std::string_view, 4>{"general", "direction differs", "not shown",
                                         "differs"}[static_cast<std::size_t>(generality)];
}

// The effect of a factor over all combinations of the other factors' levels: of its levels `a` and `b`, or of all levels
// of a factor with more than two (`a` and `b` are then none).
struct MainEffect {
  std::size_t factor = 0;
  std::optional<std::size_t> a;  // indices of levels of the factor
  std::optional<std::size_t> b;
  std::size_t measure = 0;
  Pairing pairing = Pairing::paired;
  // "stratified-signed-rank", "van-elteren", "wilcoxon-signed-rank" (of the combinations' effects, if most
  // have no repetitions), "mixed-model-f", "linear-model-f"
  std::string test;
  bool is_exact = false;
  std::size_t n = 0;             // number of pairs (paired) or rows in the test
  std::size_t levels = 2;        // number of levels with values
  std::size_t combinations = 0;  // number of combinations of the other factors' levels that have two levels or more
  std::size_t tested_combinations =
      0;                   // number of them in the test: stratified tests leave out those without repetitions
  std::size_t higher = 0;  // number of combinations in which a is above b
  std::size_t lower = 0;
  double statistic = 0;
  double p = 1;
  double p_adjusted = 1;  // for the family: tests of this factor and kind (two levels or all)
  std::size_t family_size = 0;
  // 100 (a / b - 1), by the stratified Hodges-Lehmann estimate of the log ratio. The interval covers those of the
  // stratified test and of the combinations' effects.
  std::optional<double> percent;
  std::optional<double> percent_low;
  std::optional<double> percent_high;
  std::optional<double> difference;  // a - b in the measure's unit, only if a value is not above 0; low, high: interval
  std::optional<double> low;
  std::optional<double> high;
  std::optional<double> confidence;               // of the interval; less than 1 - alpha where there are too few rows
  std::optional<double> min_combination_percent;  // smallest and greatest effect of a combination
  std::optional<double> max_combination_percent;
  std::optional<double> rank_p;          // test over all levels: the same test of aligned ranks
  std::optional<double> combinations_p;  // signed-rank test of the combinations' effects
  std::optional<double> direction_p;     // Gail-Simon test: the direction differs between combinations
  std::optional<double> direction_p_adjusted;
  std::optional<double> model_percent;  // by the linear (mixed) model, with Student's t interval
  std::optional<double> model_percent_low;
  std::optional<double> model_percent_high;
  EffectGenerality generality = EffectGenerality::not_shown;
  std::string verdict;  // human-readable
};

// Effect of a two-level factor at one level of another factor: the mean over combinations with that level.
struct LevelEffect {
  std::size_t level = 0;  // of the other factor
  double percent = 0;     // 100 (a / b - 1)
};

// Whether the effect of a factor depends on another factor: an F test in the linear (mixed) model.
struct Interaction {
  std::size_t factor = 0;
  std::size_t other = 0;
  std::size_t measure = 0;
  std::string test;  // "mixed-model-f", "linear-model-f"
  double f = 0;
  double numerator_df = 0;
  double denominator_df = 0;
  double p = 1;
  double p_adjusted = 1;  // for the family: interactions of this factor
  std::size_t family_size = 0;
  std::optional<double> rank_p;     // the same test of aligned ranks
  std::vector<LevelEffect> levels;  // empty if the factor has more than two levels or a value is not above 0
  bool is_different = false;        // p_adjusted < alpha
  std::string verdict;              // human-readable
};

// Rank correlation of two measures over the rows of one cell, or over the medians of all cells (`cell` is none).
struct Association {
  std::optional<std::size_t> cell;
  std::size_t x = 0;  // x, y: indices into AnalysisResult::measures
  std::size_t y = 0;
  std::size_t n = 0;
  std::optional<double> spearman;
  std::optional<double> spearman_p;
  std::optional<double> kendall;
  std::optional<double> kendall_p;
};

// Spearman's correlation of an energy with another number, over the medians of cells: of those with one level of a
// compared factor, or of all cells (`factor` and `level` are none). p is not adjusted.
struct LevelCorrelation {
  std::optional<std::size_t> factor;
  std::optional<std::size_t> level;
  std::size_t x = 0;  // index into AnalysisResult::measures: the energy, total or of a kind of domain
  std::string y;      // "time_s", "power_w" (mean power of x), or the name of a metric
  std::size_t n = 0;  // number of cells
  double spearman = 0;
  double p = 1;
};

// A cell and whether it is on the Pareto front: no other cell of the set is at least as good in every measure and
// better in one.
struct ParetoPoint {
  std::size_t cell = 0;
  bool is_on_front = false;  // based on the means of the rows
  double probability = 0;    // fraction of bootstrap resamples of the rows in which the cell is on the front
};
// Cells that differ only in compared factors.
struct ParetoSet {
  std::vector<std::optional<std::size_t>> fixed_levels;  // by factor: its level; none for compared factors
  std::vector<std::size_t> measures;                     // objectives of the front
  std::size_t resamples = 0;
  std::vector<ParetoPoint> points;
};

struct AnalysisResult {
  std::string name;
  std::vector<ExperimentFactor> factors;
  std::vector<Measure> measures;
  bool is_blocked = false;
  double alpha = 0.05;
  std::string adjustment;  // "holm", "bonferroni", "bh", "none"
  std::uint64_t seed = 0;
  std::size_t resamples = 0;
  std::vector<EpochColumn> epoch_columns;  // gauges, then metrics, of which an epoch has a value
  std::vector<AnalysisCell> cells;         // cells that have rows, in the order of the levels
  std::vector<MainEffect> main_effects;    // empty if the compared factors are the only ones
  std::vector<Interaction> interactions;
  std::vector<Comparison> comparisons;
  std::vector<Association> associations;
  std::vector<LevelCorrelation> correlations;
  std::vector<ParetoSet> pareto;
  std::vector<AnalysisFlag> flags;                  // of the whole experiment
  std::vector<std::vector<std::string>> row_flags;  // flag codes of each row of ExperimentData::rows
  std::string methods;                              // a methods paragraph for a paper, with the numbers
  Diagnostics diagnostics;                          // of the folder and its rows
};

}  // namespace joulemap
