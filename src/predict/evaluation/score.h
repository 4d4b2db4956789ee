// SPDX-License-Identifier: Apache-2.0
//
// How far predictions are off, in numbers. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace joulemap::predict {

// An operation, or what is added up of several: joules, or seconds where only its time was measured.
struct OperationCase {
  std::string key;
  std::string kind;
  double measured = 0;
  double predicted = 0;
};

// Relative errors; widths are half of high - low, by the prediction.
struct Score {
  std::size_t cases = 0;
  double rmspe = 0;
  double mape = 0;
  double median = 0;
  double p90 = 0;
  double bias = 0;
  double tau = 0;       // Kendall's, of measured and predicted
  double coverage = 0;  // of the intervals; networks only
  double width = 0;     // median
};
struct NamedScore {
  std::string name;
  Score score;
};

Score score(std::span<const double> measured, std::span<const double> predicted);
Score score(std::span<const OperationCase> cases);
// All of them, and each kind.
std::vector<NamedScore> scores_by_kind(std::span<const OperationCase> cases);

// Of sorted or unsorted values, between the two that lie around it; 0 of none.
double quantile(std::vector<double> values, double share);

}  // namespace joulemap::predict
