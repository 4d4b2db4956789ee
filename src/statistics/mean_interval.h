// SPDX-License-Identifier: Apache-2.0
//
// The mean of repeated measurements and the interval that contains the true mean with a given confidence
// (Student's t). Holds for independent repetitions of roughly normal spread. Pure.
#pragma once

#include <optional>
#include <span>

namespace joulemap::statistics {

struct MeanInterval {
  double mean = 0;
  std::optional<double> half_width;  // none for a single value: one measurement says nothing about its spread
};

// Nothing for no values.
std::optional<MeanInterval> mean_interval(std::span<const double> values, double confidence);

}  // namespace joulemap::statistics
