// SPDX-License-Identifier: Apache-2.0
#include "tick_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace joulemap::simulated {
namespace {

// The finaliser of splitmix64: decorrelates neighbouring numbers.
std::uint64_t mix_bits(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// In (0, 1], so that it has a logarithm.
double hash_to_fraction(std::uint64_t value) { return (static_cast<double>(mix_bits(value) >> 11) + 1) * 0x1p-53; }

double gaussian_deviate(std::uint64_t seed, std::uint64_t number) {
  const std::uint64_t key = mix_bits(seed) ^ (2 * number);
  return std::sqrt(-2 * std::log(hash_to_fraction(key))) * std::cos(2 * std::numbers::pi * hash_to_fraction(key ^ 1));
}

}  // namespace

std::int64_t TickSchedule::tick_time_ns(std::int64_t tick) const {
  const double limit = static_cast<double>(period_ns) / 3;
  const double jitter = gaussian_deviate(seed, static_cast<std::uint64_t>(tick)) * static_cast<double>(jitter_ns);
  return origin_ns + tick * period_ns + std::llround(std::clamp(jitter, -limit, limit));
}

std::int64_t TickSchedule::first_tick_after(std::int64_t now_ns) const {
  std::int64_t tick = std::max<std::int64_t>(0, (now_ns - origin_ns) / period_ns);
  while (tick_time_ns(tick) <= now_ns) ++tick;
  return tick;
}

std::int64_t TickSchedule::running_since_ns(std::int64_t last_ns, std::int64_t now_ns) const {
  return std::max(last_ns, now_ns - 2 * period_ns);
}

}  // namespace joulemap::simulated
