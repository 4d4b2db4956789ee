// SPDX-License-Identifier: Apache-2.0
//
// Adds independent errors in quadrature. Avoids std::hypot: joules need no protection against overflow, and its newest
// symbol version would require glibc 2.35.
#pragma once

#include <cmath>

namespace joulemap {

inline double add_in_quadrature(double a, double b, double c = 0) { return std::sqrt(a * a + b * b + c * c); }

}  // namespace joulemap
