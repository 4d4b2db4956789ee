// SPDX-License-Identifier: Apache-2.0
//
// Huber's loss: squared up to a threshold and linear beyond it, so that outliers count for less. Residuals are in units
// of the noise. Pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace joulemap::statistics {

// Weight of an observation in the next round of weighted least squares: 1 up to the threshold, falling beyond it.
inline double huber_weight(double residual, double threshold) {
  return std::min(1.0, threshold / std::max(std::abs(residual), 1e-12));
}

// The same for residuals in the unit of the data, whose standard deviation is `noise`.
inline std::vector<double> huber_weights(std::span<const double> residuals, double noise, double threshold) {
  std::vector<double> weights;
  weights.reserve(residuals.size());
  for (const double residual : residuals) weights.push_back(huber_weight(residual / noise, threshold));
  return weights;
}

inline double huber_loss(double residual, double threshold) {
  const double size = std::abs(residual);
  return size <= threshold ? size * size / 2 : threshold * (size - threshold / 2);
}

// Sum of the loss over residuals in the unit of the data, whose standard deviation is `noise`.
inline double huber_loss(std::span<const double> residuals, double noise, double threshold) {
  double loss = 0;
  for (const double residual : residuals) loss += huber_loss(residual / noise, threshold);
  return loss;
}

}  // namespace joulemap::statistics
