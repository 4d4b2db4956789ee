// SPDX-License-Identifier: Apache-2.0
#include "predict/model/linear_function.h"

#include <algorithm>
#include <cmath>

#include "statistics/nonnegative_least_squares.h"

namespace joulemap::predict {
namespace {

// Weight of the prior (all slopes are 0) in observations. Little: there are thousands of rows and tens of features.
constexpr double kRidgePrecision = 3.0;

struct FeatureScale {
  double mean = 0;
  double inverse_sd = 0;  // 0 for a constant feature
};

std::vector<FeatureScale> compute_feature_scales(const TreeTrainingData& rows) {
  std::vector<FeatureScale> scales(rows.columns);
  for (std::size_t column = 0; column < rows.columns; ++column) {
    double weight = 0;
    double sum = 0;
    double squares = 0;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const double value = rows.features[row * rows.columns + column];
      weight += rows.weights[row];
      sum += rows.weights[row] * value;
      squares += rows.weights[row] * value * value;
    }
    if (weight <= 0) continue;
    scales[column].mean = sum / weight;
    const double variance = squares / weight - scales[column].mean * scales[column].mean;
    constexpr double kMinVariance = 1e-9;
    if (variance > kMinVariance) scales[column].inverse_sd = 1 / std::sqrt(variance);
  }
  return scales;
}

}  // namespace

double LinearFunction::predict(std::span<const float> features) const {
  double sum = intercept;
  for (std::size_t i = 0; i < std::min(slopes.size(), features.size()); ++i) sum += slopes[i] * features[i];
  return std::clamp(sum, -kMaxLinearResidual, kMaxLinearResidual);
}

LinearFunction fit_linear_function(const TreeTrainingData& rows) {
  if (rows.size() == 0) return {};
  const std::vector<FeatureScale> scales = compute_feature_scales(rows);
  statistics::NormalEquations sums(rows.columns + 1);
  std::vector<double> standardized(rows.columns + 1, 1.0);  // the last one is the constant of the intercept
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t column = 0; column < rows.columns; ++column) {
      const double value = rows.features[row * rows.columns + column];
      standardized[column] = (value - scales[column].mean) * scales[column].inverse_sd;
    }
    sums.add_observation(standardized, rows.targets[row], rows.weights[row]);
  }
  const std::vector<statistics::Prior> priors(rows.columns + 1, {0, kRidgePrecision});
  const std::vector<double> solution = statistics::least_squares(sums, priors);
  LinearFunction function;
  function.intercept = solution.back();
  for (std::size_t column = 0; column < rows.columns; ++column) {
    function.slopes.push_back(solution[column] * scales[column].inverse_sd);
    function.intercept -= function.slopes.back() * scales[column].mean;
  }
  return function;
}

}  // namespace joulemap::predict
