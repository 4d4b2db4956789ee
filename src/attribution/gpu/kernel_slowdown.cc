// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/kernel_slowdown.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace joulemap::attribution {
namespace {

constexpr std::size_t kMinKernelsForFullSpeed = 20;
// Shorter kernels do not show a slowdown: durations have a resolution of 32 ns.
constexpr double kMinFullSpeedDuration_ns = 3000;
// Quantile of the durations that counts as full speed: a few kernels are faster by chance.
constexpr double kFullSpeedQuantile = 0.2;
// Clocks never drop by more than this for a short time; a kernel that takes longer does other work.
constexpr double kMaxSlowdown = 1.6;
constexpr double kMinFullSpeedRatio = 0.95;
constexpr double kMinSimilarDurationFraction = 0.9;
constexpr double kPackedSlowdownUnit = 0.005;

}  // namespace

double full_speed_duration_ns(std::vector<std::uint32_t> lengths_ns) {
  if (lengths_ns.size() < kMinKernelsForFullSpeed) return 0;
  const auto full_speed_quantile =
      lengths_ns.begin() + static_cast<std::ptrdiff_t>(kFullSpeedQuantile * static_cast<double>(lengths_ns.size()));
  std::nth_element(lengths_ns.begin(), full_speed_quantile, lengths_ns.end());
  const double full_speed_ns = *full_speed_quantile;
  if (full_speed_ns < kMinFullSpeedDuration_ns) return 0;
  const auto similar_count = std::count_if(lengths_ns.begin(), lengths_ns.end(), [&](std::uint32_t length_ns) {
    return length_ns >= kMinFullSpeedRatio * full_speed_ns && length_ns <= kMaxSlowdown * full_speed_ns;
  });
  return static_cast<double>(similar_count) >= kMinSimilarDurationFraction * static_cast<double>(lengths_ns.size())
             ? full_speed_ns
             : 0;
}

double slowdown_factor(double length_ns, double full_speed_ns) {
  if (full_speed_ns <= 0 || length_ns <= full_speed_ns || length_ns > kMaxSlowdown * full_speed_ns) return 1;
  return length_ns / full_speed_ns;
}

std::uint8_t pack_slowdown(double slowdown) {
  return static_cast<std::uint8_t>(std::clamp(std::round((slowdown - 1) / kPackedSlowdownUnit), 0.0, 255.0));
}

double unpack_slowdown(std::uint8_t packed_slowdown) { return 1 + kPackedSlowdownUnit * packed_slowdown; }

}  // namespace joulemap::attribution
