// SPDX-License-Identifier: Apache-2.0
//
// Error statistics of predictions. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace joulemap::predict {

// A measured and a predicted value of an operation, or their sums over several operations: joules, or seconds if only
// the time was measured.
struct OperationCase {
  std::string key;
  std::string kind;
  double measured = 0;
  double predicted = 0;
};

// Relative errors (predicted / measured - 1) as fractions, not percent. All 0 without cases.
struct Score {
  std::size_t cases = 0;
  double rmspe = 0;
  double mape = 0;
  double median = 0;
  double p90 = 0;
  double bias = 0;
  double tau = 0;       // Kendall's tau of measured and predicted
  double coverage = 0;  // fraction of intervals that contain the measured value; networks only
  double width = 0;     // median half width of the intervals, divided by the prediction; networks only
};
struct NamedScore {
  std::string name;
  Score score;
};

Score score_predictions(std::span<const double> measured, std::span<const double> predicted);
Score score_predictions(std::span<const OperationCase> cases);
// Scores of all cases, named "all", then of each kind.
std::vector<NamedScore> score_predictions_by_kind(std::span<const OperationCase> cases);

// Quantile `share` (0 to 1) by linear interpolation. The values may be unsorted; 0 for an empty vector.
double quantile(std::vector<double> values, double share);

}  // namespace joulemap::predict
