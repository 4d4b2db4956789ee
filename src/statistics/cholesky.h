// SPDX-License-Identifier: Apache-2.0
//
// Cholesky factors of small symmetric matrices, row by row. By hand, because Eigen's LLT refuses a matrix whose smallest
// pivots rounding made negative, which covariances of nearly collinear columns have. Same input, same bits. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace joulemap::statistics {

// Lower triangular L with L L' = matrix, of which only the lower triangle is read. Pivots below `least_pivot` count as
// that; a column whose pivot is 0 becomes 0.
std::vector<double> cholesky(std::span<const double> matrix, std::size_t size, double least_pivot = 0);

// Solves L L' x = b; b becomes x. The pivots of `lower` must not be 0.
void solve_cholesky(std::span<const double> lower, std::vector<double>& b);

}  // namespace joulemap::statistics
