// SPDX-License-Identifier: Apache-2.0
//
// AnalysisResult: the results of an experiment and the caveats that limit them. `experiment/analysis/analyze.h`
// computes it from ExperimentData as a pure function; reports print it (docs/analysis.md). Plain data; joules, seconds,
// fractions of 1.
//
// A measure is a number that rows have: "energy_j", "time_s", the sum of the domains of one kind ("package", "dram",
// "gpu"), or a metric of the experiment ("accuracy"). "energy_j" sums the counted domains of one provenance that all
// rows have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/diagnostics.h"
#include "model/experiment_data.h"
#include "model/function_result.h"

namespace joulemap {

// A property of the data that the reader must see before the numbers.
struct AnalysisFlag {
  std::string code;     // machine-readable: "warm_up"
  std::string message;  // human-readable
  std::string remedy;   // empty when there is none
};

enum class MeasureKind { energy, time, domain, metric };

struct Measure {
  std::string name;  // "energy_j", "time_s", "gpu", "accuracy"
  MeasureKind kind = MeasureKind::energy;
  std::string unit;  // "J", "s", or the unit of the metric
  bool more_is_better = false;
  bool is_compared = true;                         // false: displayed only, part of no comparison
  std::optional<Provenance> provenance = {};       // of energies
  std::vector<std::string> domains = {};           // domains in the sum; empty: the rows have no domain in common
  std::vector<std::string> excluded_domains = {};  // domains that only some rows have, excluded from the sum
  bool is_estimated() const { return provenance == Provenance::estimated; }
};

// The values of one measure in one cell.
struct MeasureSummary {
  std::vector<double> values;  // in execution order, of the rows that have a value
  double mean = 0;
  double median = 0;
  double low = 0;  // BCa bootstrap interval of the mean at 1 - alpha; both equal the mean when it cannot be computed
  double high = 0;
  double standard_deviation = 0;
  std::vector<std::size_t> outliers;  // indices into `values`; flagged, never dropped
};

// Epochs of a cell over all its rows. The first epoch is separate because it contains one-time work.
struct EpochSummary {
  std::size_t epochs = 0;  // maximum over the rows
  std::optional<double> first_j;
  std::optional<double> later_j;  // mean of the epochs after the first
  std::optional<double> first_s;
  std::optional<double> later_s;
};

struct AnalysisCell {
  std::vector<std::size_t> levels;                      // one index into each factor's levels
  std::size_t rows = 0;                                 // planned
  std::size_t n = 0;                                    // done
  std::vector<std::optional<MeasureSummary>> measures;  // same order as AnalysisResult::measures
  std::optional<EpochSummary> epochs;
  std::vector<CellFunctionMean> functions;  // highest energy first; empty when no row was traced
  std::vector<AnalysisFlag> flags;
};

enum class Pairing { paired, unpaired };

// One test between two levels, or over all levels of a factor with more than two (`a` and `b` empty).
struct Comparison {
  std::size_t factor = 0;
  std::optional<std::size_t> a;  // indices of levels of the factor
  std::optional<std::size_t> b;
  std::vector<std::optional<std::size_t>> fixed_levels;  // level of each factor; none for the compared factor
  std::size_t measure = 0;
  Pairing pairing = Pairing::paired;
  std::string test;  // "wilcoxon-signed-rank", "mann-whitney", "friedman", "kruskal-wallis"
  bool is_exact = true;
  std::size_t n_a = 0;  // number of pairs when paired; of an omnibus test all rows
  std::size_t n_b = 0;
  std::optional<double> p;           // none when the data do not allow the test; `verdict` gives the reason
  std::optional<double> p_adjusted;  // within the family: same factor, same pairing, two levels or omnibus
  std::size_t family_size = 0;       // number of tests in the family
  std::optional<double> statistic;
  std::optional<double> vargha_delaney_a12;  // Vargha-Delaney A12: P(a > b) + P(a = b) / 2
  std::optional<double> a12_low;             // interval for two independent groups, even when the rows are paired
  std::optional<double> a12_high;
  std::optional<double> cliffs_delta;  // 2 a12 - 1
  std::optional<double> difference;    // a - b, Hodges-Lehmann, in the measure's unit
  std::optional<double> low;
  std::optional<double> high;
  std::optional<double> percent;  // the difference in percent of the median of b
  std::optional<double> percent_low;
  std::optional<double> percent_high;
  std::optional<std::size_t> minimum_n;  // rows of each level needed to reach alpha in a family of this size
  bool is_different = false;             // p_adjusted below alpha
  std::string verdict;                   // human-readable
};

// Correlation of two measures within one cell, or over the medians of all cells (`cell` empty).
struct Association {
  std::optional<std::size_t> cell;
  std::size_t x = 0;  // indices of measures
  std::size_t y = 0;
  std::size_t n = 0;
  std::optional<double> spearman;
  std::optional<double> spearman_p;
  std::optional<double> kendall;
  std::optional<double> kendall_p;
};

// Pareto front over cells that differ only in compared factors: no other cell is better in every measure.
struct ParetoPoint {
  std::size_t cell = 0;
  bool is_on_front = false;  // based on the means
  double probability = 0;    // of being on the front, over bootstrap resamples of the rows
};
struct ParetoSet {
  std::vector<std::optional<std::size_t>> fixed_levels;  // levels of the factors that are not compared
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
  std::vector<AnalysisCell> cells;  // cells that have rows, in the order of the levels
  std::vector<Comparison> comparisons;
  std::vector<Association> associations;
  std::vector<ParetoSet> pareto;
  std::vector<AnalysisFlag> flags;                  // of the whole experiment
  std::vector<std::vector<std::string>> row_flags;  // by row of the data: codes of the flags of that row
  std::string methods;                              // a methods paragraph for a paper, with the numbers
  Diagnostics diagnostics;                          // of the folder and its rows
};

}  // namespace joulemap
