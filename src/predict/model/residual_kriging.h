// SPDX-License-Identifier: Apache-2.0
//
// ResidualKriging: interpolates measured residuals between operations that differ only in their sizes. Two convolutions
// with the same kernel and stride mostly run the same code at other batches, images and widths. The physics model
// (physics.h) therefore misses both by a similar factor. The correlation of two residuals falls with the distance of
// the logarithms of their sizes; far from every measurement the interpolated residual is 0. A value type; queries are
// pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "predict/graph/operation.h"

namespace joulemap::predict {

inline constexpr std::size_t kKrigingDimensions = 4;

// One measurement, quantized as the profile's text stores it, so that a profile gives the same result after a round
// trip.
struct ResidualSample {
  std::array<std::int32_t, kKrigingDimensions> log_sizes = {};  // natural logarithms in units of 0.01: 0 to 4095
  std::int32_t alignment_class = 0;                             // exponent of 2 in one size, by kind; at most 2
  // Residuals: natural logarithms of measured / physical, in units of 0.001: -2047 to 2047.
  std::int32_t time_residual = 0;
  std::int32_t power_residual = 0;

  bool operator==(const ResidualSample&) const = default;
};
ResidualSample make_residual_sample(const Operation& operation, double time, double power);

struct InterpolatedResidual {
  double time_residual = 0;     // residual of the time, a natural logarithm
  double power_residual = 0;    //
  double kriging_variance = 1;  // of residuals: 1 without similar measurements, near 0 at a measured operation
};

struct ResidualKriging {
  std::map<std::uint64_t, std::vector<ResidualSample>>
      samples_by_group;  // by a hash of all properties that are not sizes

  void add(const Operation& operation, bool is_cache_cold, const ResidualSample& sample);
  // Residuals at the sizes of an operation. Ignores samples equal to `excluded_sample`: a leave-one-out interpolation.
  InterpolatedResidual interpolate(const Operation& operation, bool is_cache_cold,
                                   const ResidualSample* excluded_sample = nullptr) const;
};

// Groups and samples as one line of text, for a profile. Numbers are in radix 64 (A-Z a-z 0-9 - _), most significant
// digit first, without separators; brackets below give the count of digits. A group: its hash (11), its count of
// samples (4), the samples. A sample: its sizes (2 each), alignment (1), time and power (2 each, with an offset of
// 2048).
std::string kriging_text(const ResidualKriging& kriging);
Result<ResidualKriging> read_kriging(std::string_view text);

}  // namespace joulemap::predict
