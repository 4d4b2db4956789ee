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
  const double quantile_position = share * static_cast<double>(values.size() - 1);
  const auto lower_index = static_cast<std::size_t>(quantile_position);
  const std::size_t upper_index = std::min(lower_index + 1, values.size() - 1);
  return std::lerp(values[lower_index], values[upper_index], quantile_position - static_cast<double>(lower_index));
}

Score score_predictions(std::span<const double> measured, std::span<const double> predicted) {
  Score total;
  total.cases = measured.size();
  if (measured.empty()) return total;
  std::vector<double> errors;
  double squares = 0;
  double sum = 0;
  double absolute_error_sum = 0;
  for (std::size_t index = 0; index < measured.size(); ++index) {
    const double error = predicted[index] / measured[index] - 1;
    errors.push_back(std::fabs(error));
    squares += error * error;
    sum += error;
    absolute_error_sum += std::fabs(error);
  }
  const auto count = static_cast<double>(measured.size());
  total.rmspe = std::sqrt(squares / count);
  total.mape = absolute_error_sum / count;
  total.bias = sum / count;
  total.median = quantile(errors, 0.5);
  total.p90 = quantile(std::move(errors), 0.9);
  total.tau = statistics::compute_kendall_statistics(measured, predicted).tau_b.value_or(0);
  return total;
}

Score score_predictions(std::span<const OperationCase> cases) {
  std::vector<double> measured;
  std::vector<double> predicted;
  for (const OperationCase& operation_case : cases) {
    measured.push_back(operation_case.measured);
    predicted.push_back(operation_case.predicted);
  }
  return score_predictions(measured, predicted);
}

std::vector<NamedScore> score_predictions_by_kind(std::span<const OperationCase> cases) {
  std::vector<NamedScore> scores = {{"all", score_predictions(cases)}};
  std::map<std::string, std::vector<OperationCase>> kinds;
  for (const OperationCase& operation_case : cases) kinds[operation_case.kind].push_back(operation_case);
  for (const auto& [kind, kind_cases] : kinds) scores.push_back({kind, score_predictions(kind_cases)});
  return scores;
}

}  // namespace joulemap::predict
