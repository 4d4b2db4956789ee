// SPDX-License-Identifier: Apache-2.0
//
// KernelPower: what a class of kernels was found to draw on one model of GPU, over all recordings that could tell. Entries
// of the kernel library (docs/attribution.md) and, frozen, of a recording. Plain data, pure functions; watts, seconds.
//
// A finding is a power with a relative standard deviation. Findings of several recordings differ by more than these say:
// clocks, heat, other cards, other data. So the entry keeps what is needed to estimate that spread, too (DerSimonian and
// Laird, "Meta-analysis in clinical trials", 1986).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "model/activity.h"

namespace joulemap {

// The same code on about as many threads: what is taken to draw one power.
struct KernelCode {
  KernelKind kind = KernelKind::kernel;
  std::string name;
  std::uint32_t size = 0;  // bits of the number of threads: sizes within a factor of two are one class

  auto operator<=>(const KernelCode&) const = default;  // NOLINT: clang-tidy 14 sees a null pointer
  bool operator==(const KernelCode&) const = default;
};
KernelCode code_of(const KernelClass& known);
// A GPU that waits between kernels: no kernel has size 0.
KernelCode idle_code();

// A class as it ran somewhere: what its kind is told by.
struct SeenKernels {
  KernelCode code;
  double blocks = 0;
  double threads_per_block = 0;
  double time_s = 0;
  std::uint64_t count = 0;

  double kernel_s() const { return count > 0 ? time_s / static_cast<double>(count) : 0; }
  // Of the same code.
  void add(const SeenKernels& others);
};
SeenKernels seen_kernels(const KernelClass& known, double time_s, std::uint64_t count);

struct KernelPower {
  std::string gpu;  // its model: "NVIDIA H200"
  KernelCode code;
  double blocks = 0;  // of a kernel, on average, like the two below
  double threads_per_block = 0;
  double kernel_s = 0;
  double watts = 0;              // mean of the findings, weighted by their precision
  double precision = 0;          // sum of 1 / variance of the findings, relative
  double precision_squares = 0;  // sum of the squares of these
  double scatter = 0;            // sum of squared differences of the findings from the mean, relative, times precision
  double evidence_s = 0;         // how long its kernels ran in recordings that told
  std::uint64_t recordings = 0;  // 0: nobody measured it; its kind is like this

  bool is_borrowed() const { return recordings == 0; }
};

// One finding as an entry. `spread`: its relative standard deviation, above 0.
KernelPower finding(std::string gpu, const SeenKernels& seen, double watts, double spread);
// What nobody measured, taken from others of its kind.
KernelPower borrowed(std::string gpu, const SeenKernels& seen, double watts, double spread);

// Both of the same GPU and code.
void merge(KernelPower& known, const KernelPower& more);

// What the power in another recording may differ by from `watts`: relative standard deviation.
double spread_of(const KernelPower& known);

// Nothing in it is out of bounds or contradicts itself: what a file says need not be true.
bool is_sound(const KernelPower& known);

// The library: by GPU and code, each once. What is new is merged into what is known. Of each GPU those with the least
// evidence are dropped where there are more than `most`; gives how many were.
inline constexpr std::size_t kMostKernelPowers = 20'000;
std::size_t merge_all(std::vector<KernelPower>& library, std::vector<KernelPower> findings,
                      std::size_t most = kMostKernelPowers);
// Nothing where that GPU's code is not in it. The library is sorted, as merge_all leaves it.
const KernelPower* find_power(const std::vector<KernelPower>& library, const std::string& gpu, const KernelCode& code);

}  // namespace joulemap
