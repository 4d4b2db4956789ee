// SPDX-License-Identifier: Apache-2.0
//
// AnalysisResult: what an experiment shows and what speaks against believing it. `experiment/analysis/analyze.h` makes it
// of ExperimentData, a pure function; reports print it (docs/analysis.md). Plain data; joules, seconds, shares of 1.
//
// A measure is a number that rows have: "energy_j" (counted domains of one provenance that all rows have), "time_s", the
// domains of one kind together ("package", "dram", "gpu"), or a metric of the experiment ("accuracy").
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

// Something about the data that a reader must know before the numbers.
struct AnalysisFlag {
  std::string code;     // for programs: "warm_up"
  std::string message;  // for people
  std::string remedy;   // empty where nothing is known
};

enum class MeasureKind { energy, time, domain, metric };

struct Measure {
  std::string name;  // "energy_j", "time_s", "gpu", "accuracy"
  MeasureKind kind = MeasureKind::energy;
  std::string unit;  // "J", "s", the metric's
  bool more_is_better = false;
  bool weighed = true;  // else shown beside: in no comparison
  std::optional<Provenance> provenance = {};  // of energies
  std::vector<std::string> domains = {};      // in the sum; none: rows have energies, but of no domain in common
  std::vector<std::string> left_out = {};     // of some rows only: in no sum
  bool is_estimated() const { return provenance == Provenance::estimated; }
};

// The values of one measure in one cell.
struct Spread {
  std::vector<double> values;  // in the order in which the rows ran; of rows that have one
  double mean = 0;
  double median = 0;
  double low = 0;  // of the mean, at 1 - alpha, BCa bootstrap; both the mean where the values do not tell
  double high = 0;
  double standard_deviation = 0;
  std::vector<std::size_t> outliers;  // into `values`; flagged, never dropped
};

// Epochs of a cell over all its rows, the first apart: it holds what is done once.
struct EpochSummary {
  std::size_t epochs = 0;  // of a row, the most
  std::optional<double> first_j;
  std::optional<double> later_j;  // mean of an epoch after the first
  std::optional<double> first_s;
  std::optional<double> later_s;
};

struct AnalysisCell {
  std::vector<std::size_t> levels;              // one index into each factor's levels
  std::size_t rows = 0;                         // planned
  std::size_t n = 0;                            // done
  std::vector<std::optional<Spread>> measures;  // as in AnalysisResult::measures
  std::optional<EpochSummary> epochs;
  std::vector<CellFunction> functions;  // those that drew the most first; none where no row was traced
  std::vector<AnalysisFlag> flags;
};

enum class Pairing { paired, unpaired };

// One test. Of two levels, or of all levels of a factor (`a` and `b` empty), where there are more than two.
struct Comparison {
  std::size_t factor = 0;
  std::optional<std::size_t> a;  // levels of the factor
  std::optional<std::size_t> b;
  std::vector<std::optional<std::size_t>> within;  // one for each factor: its level; none for the one that is compared
  std::size_t measure = 0;
  Pairing pairing = Pairing::paired;
  std::string test;  // "wilcoxon-signed-rank", "mann-whitney", "friedman", "kruskal-wallis"
  bool is_exact = true;
  std::size_t n_a = 0;  // pairs where paired; of an omnibus test all rows
  std::size_t n_b = 0;
  std::optional<double> p;           // none where the data do not allow the test: `verdict` says why
  std::optional<double> p_adjusted;  // within its family: same factor, same pairing, two levels or all
  std::size_t family = 0;            // tests in it
  std::optional<double> statistic;
  std::optional<double> a12;      // how often a value of `a` is larger than one of `b`, ties half
  std::optional<double> a12_low;  // of two groups, whether or not the rows are paired
  std::optional<double> a12_high;
  std::optional<double> cliff;       // 2 a12 - 1
  std::optional<double> difference;  // a - b, Hodges-Lehmann, in the measure's unit
  std::optional<double> low;
  std::optional<double> high;
  std::optional<double> percent;  // the difference in percent of b's median
  std::optional<double> percent_low;
  std::optional<double> percent_high;
  std::optional<std::size_t> minimum_n;  // so many rows of each level are needed for alpha in such a family
  bool is_different = false;             // p_adjusted below alpha
  std::string verdict;                   // in words
};

// How two measures go together within one cell, and over the medians of all cells (`cell` empty).
struct Association {
  std::optional<std::size_t> cell;
  std::size_t x = 0;  // measures
  std::size_t y = 0;
  std::size_t n = 0;
  std::optional<double> spearman;
  std::optional<double> spearman_p;
  std::optional<double> kendall;
  std::optional<double> kendall_p;
};

// Of cells that answer the same question: is any other better in everything?
struct ParetoPoint {
  std::size_t cell = 0;
  bool is_on_front = false;  // by the means
  double probability = 0;    // of being on it, when rows are drawn again
};
struct ParetoSet {
  std::vector<std::optional<std::size_t>> within;  // levels of the factors that are not compared
  std::vector<std::size_t> measures;               // what is weighed
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
  std::vector<AnalysisCell> cells;  // of those that have rows, in the order of the levels
  std::vector<Comparison> comparisons;
  std::vector<Association> associations;
  std::vector<ParetoSet> pareto;
  std::vector<AnalysisFlag> flags;                  // of the experiment
  std::vector<std::vector<std::string>> row_flags;  // by row of the data: codes of what is told of it alone
  std::string methods;                              // a paragraph for a paper: what was done, with the numbers
  Diagnostics diagnostics;                          // of the folder and its rows
};

}  // namespace joulemap
