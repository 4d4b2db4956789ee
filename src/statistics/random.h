// SPDX-License-Identifier: Apache-2.0
//
// Random: numbers for replicates that are the same with every compiler and library, which the standard's
// distributions are not. A value; one thread.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>

namespace joulemap::statistics {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  double uniform() { return (static_cast<double>(engine_() >> 11) + 0.5) * 0x1p-53; }  // within 0 .. 1
  std::uint64_t bits() { return engine_(); }
  // A whole number of 0 .. size - 1, size < 2^32; each as likely as the others to one part in 2^32.
  std::size_t below(std::size_t size) { return static_cast<std::size_t>(((engine_() >> 32) * size) >> 32); }
  double exponential() { return -std::log(uniform()); }  // of mean 1
  double normal() { return std::sqrt(2 * exponential()) * std::cos(2 * M_PI * uniform()); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace joulemap::statistics
