// SPDX-License-Identifier: Apache-2.0
#include "predict/evaluation/score.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "statistics/correlation.h"

namespace joulemap::predict {

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], at - static_cast<double>(below));
}

Score score_predictions(std::span<const double> measured, std::span<const double> predicted) {
  Score total;
  total.cases = measured.size();
  if (measured.empty()) return total;
  std::vector<double> errors;
  double squares = 0;
  double sum = 0;
  double absolute = 0;
  for (std::size_t index = 0; index < measured.size(); ++index) {
    const double error = predicted[index] / measured[index] - 1;
    errors.push_back(std::fabs(error));
    squares += error * error;
    sum += error;
    absolute += std::fabs(error);
  }
  const auto count = static_cast<double>(measured.size());
  total.rmspe = std::sqrt(squares / count);
  total.mape = absolute / count;
  total.bias = sum / count;
  total.median = quantile(errors, 0.5);
  total.p90 = quantile(std::move(errors), 0.9);
  total.tau = statistics::compute_kendall_statistics(measured, predicted).tau_b.value_or(0);
  return total;
}

Score score_predictions(std::span<const OperationCase> cases) {
  std::vector<double> measured;
  std::vector<double> predicted;
  for (const OperationCase& one : cases) {
    measured.push_back(one.measured);
    predicted.push_back(one.predicted);
  }
  return score_predictions(measured, predicted);
}

std::vector<NamedScore> score_predictions_by_kind(std::span<const OperationCase> cases) {
  std::vector<NamedScore> scores = {{"all", score_predictions(cases)}};
  std::map<std::string, std::vector<OperationCase>> kinds;
  for (const OperationCase& one : cases) kinds[one.kind].push_back(one);
  for (const auto& [kind, some] : kinds) scores.push_back({kind, score_predictions(some)});
  return scores;
}

}  // namespace joulemap::predict
