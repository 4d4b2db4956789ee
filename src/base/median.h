// SPDX-License-Identifier: Apache-2.0
//
// The median of a sample; of an even number of values the upper one of the two in the centre. It is a robust scale; use
// statistics::median_of() for a median that a report contains. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace joulemap {

// Standard deviation of a normal distribution divided by its median absolute deviation.
inline constexpr double kMadToStandardDeviation = 1.4826;

// `fallback` where there are no values.
template <class Number>
Number median_or(std::vector<Number> values, Number fallback) {
  if (values.empty()) return fallback;
  const auto centre = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), centre, values.end());
  return *centre;
}

}  // namespace joulemap
