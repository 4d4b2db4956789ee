// SPDX-License-Identifier: Apache-2.0
//
// The mean of repeated measurements and its confidence interval (Student's t). Valid for independent repetitions with a
// roughly normal distribution. Pure.
#pragma once

#include <optional>
#include <span>

namespace joulemap::statistics {

struct MeanInterval {
  double mean = 0;
  std::optional<double> half_width;  // none for a single value, which has no estimate of the spread
};

// Nothing for no values.
std::optional<MeanInterval> mean_interval(std::span<const double> values, double confidence);

}  // namespace joulemap::statistics
