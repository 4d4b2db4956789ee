// SPDX-License-Identifier: Apache-2.0
//
// Random: random numbers for replicates that are identical with every compiler and library, unlike the standard's
// distributions. A value type; one thread.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>

#include "base/hash.h"

namespace joulemap::statistics {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  double uniform() { return (static_cast<double>(engine_() >> 11) + 0.5) * 0x1p-53; }  // within 0 .. 1
  // An integer of 0 .. size - 1, size < 2^32; uniform to one part in 2^32.
  std::size_t uniform_below(std::size_t size) { return static_cast<std::size_t>(((engine_() >> 32) * size) >> 32); }
  double exponential() { return -std::log(uniform()); }  // of mean 1
  double normal() { return std::sqrt(2 * exponential()) * std::cos(2 * M_PI * uniform()); }

 private:
  std::mt19937_64 engine_;
};

// SplitMix64: the n-th number is a function of seed + n, so a processor computes several at
// once. For resampling, where drawing dominates the cost.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    state_ += kGoldenRatio64;
    return mix_bits(state_);
  }
  // The same range and uniformity as Random::uniform_below().
  std::size_t uniform_below(std::size_t size) { return static_cast<std::size_t>(((bits() >> 32) * size) >> 32); }

 private:
  std::uint64_t state_;
};

}  // namespace joulemap::statistics
