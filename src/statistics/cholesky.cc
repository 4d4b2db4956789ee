// SPDX-License-Identifier: Apache-2.0
#include "statistics/cholesky.h"

#include <algorithm>
#include <cmath>

namespace joulemap::statistics {

std::vector<double> cholesky_factor(std::span<const double> matrix, std::size_t size, double min_pivot) {
  std::vector<double> lower(size * size, 0.0);
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = matrix[i * size + j];
      for (std::size_t k = 0; k < j; ++k) sum -= lower[i * size + k] * lower[j * size + k];
      if (i == j) {
        lower[i * size + i] = std::sqrt(std::max(sum, min_pivot));
      } else if (lower[j * size + j] > 0) {
        lower[i * size + j] = sum / lower[j * size + j];
      }
    }
  }
  return lower;
}

void solve_cholesky(std::span<const double> lower, std::vector<double>& b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= lower[i * n + k] * b[k];
    b[i] /= lower[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= lower[k * n + i] * b[k];
    b[i] /= lower[i * n + i];
  }
}

}  // namespace joulemap::statistics
