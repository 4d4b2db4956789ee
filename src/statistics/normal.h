// SPDX-License-Identifier: Apache-2.0
//
// Half widths of central intervals of a normal distribution, in standard deviations.
#pragma once

namespace joulemap::statistics {

inline constexpr double kNormalHalfWidth90 = 1.6449;
inline constexpr double kNormalHalfWidth95 = 1.9600;

}  // namespace joulemap::statistics
