// SPDX-License-Identifier: Apache-2.0
//
// Independent errors add in quadrature. Not std::hypot: its scaling against overflow is no use for joules,
// and its newest symbol version would tie what we ship to glibc 2.35.
#pragma once

#include <cmath>

namespace joulemap {

inline double in_quadrature(double a, double b, double c = 0) { return std::sqrt(a * a + b * b + c * c); }

}  // namespace joulemap
