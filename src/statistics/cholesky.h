// SPDX-License-Identifier: Apache-2.0
//
// Cholesky factors of small symmetric matrices, stored row by row. Eigen's LLT is not used because it fails if rounding
// makes a small pivot negative, as in covariance matrices of nearly collinear columns. Same input, same bits. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace joulemap::statistics {

// Returns the lower triangular L with L L' = matrix; reads only the lower triangle of `matrix`. Pivots below
// `min_pivot` are raised to it. A column whose pivot is 0 becomes 0.
std::vector<double> cholesky_factor(std::span<const double> matrix, std::size_t size, double min_pivot = 0);

// Solves L L' x = b; b becomes x. The pivots of `lower` must not be 0.
void solve_cholesky(std::span<const double> lower, std::vector<double>& b);

}  // namespace joulemap::statistics
