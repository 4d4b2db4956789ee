// SPDX-License-Identifier: Apache-2.0
//
// Error statistics of predictions. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace joulemap::predict {

// An operation, or a sum over several: joules, or seconds if only the time was measured.
struct OperationCase {
  std::string key;
  std::string kind;
  double measured = 0;
  double predicted = 0;
};

// Relative errors; widths are half of high - low, divided by the prediction.
struct Score {
  std::size_t cases = 0;
  double rmspe = 0;
  double mape = 0;
  double median = 0;
  double p90 = 0;
  double bias = 0;
  double tau = 0;       // Kendall's tau of measured and predicted
  double coverage = 0;  // of the intervals; networks only
  double width = 0;     // median
};
struct NamedScore {
  std::string name;
  Score score;
};

Score score(std::span<const double> measured, std::span<const double> predicted);
Score score(std::span<const OperationCase> cases);
// All cases, and each kind.
std::vector<NamedScore> scores_by_kind(std::span<const OperationCase> cases);

// Linear interpolation between neighbouring values, which may be unsorted; 0 for an empty vector.
double quantile(std::vector<double> values, double share);

}  // namespace joulemap::predict
