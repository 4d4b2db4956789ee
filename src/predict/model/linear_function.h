// SPDX-License-Identifier: Apache-2.0
//
// LinearFunction: a linear function of features, fitted by ridge regression. The simplest learner of residuals
// (learned_residual.h), to compare trees with. Values; predict() is pure and safe from any thread.
#pragma once

#include <span>
#include <vector>

#include "predict/model/regression_trees.h"

namespace joulemap::predict {

struct LinearFunction {
  std::vector<double> slopes;  // by feature; empty: the function is 0
  double intercept = 0;

  // Limited to +-kMaxLinearResidual: far from the training data a line has no limits of its own.
  double predict(std::span<const float> features) const;
};

// Natural logarithm, as all residuals.
inline constexpr double kMaxLinearResidual = 2.0;

// Weighted ridge regression of standardized features. Constant features get the slope 0.
LinearFunction fit_linear_function(const TreeTrainingData& rows);

}  // namespace joulemap::predict
