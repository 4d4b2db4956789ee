// SPDX-License-Identifier: Apache-2.0
//
// KernelPower: the power of a kernel class on one GPU model, estimated over all recordings that identify it. An entry
// of the kernel library (docs/explanation/attribution.md); a recording contains a copy of the entries that it needs, so
// that its report does not change when the library does. Plain data; watts, seconds. recording/kernel_power_library.h
// makes, merges and finds entries.
//
// A finding is the power from one recording, with a relative standard deviation. Findings differ by more than these
// deviations, because clocks, temperature, cards and data differ. So an entry also contains the sums needed to estimate
// the variance between recordings (DerSimonian and Laird, "Meta-analysis in clinical trials", 1986).
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "model/activity.h"

namespace joulemap {

// Identifies kernels that are assumed to have one power: the same code on about the same number of threads.
struct KernelPowerKey {
  KernelKind kind = KernelKind::kernel;
  std::string name;
  std::uint32_t size = 0;  // bit width of the number of threads, so that one key covers a factor of two

  auto operator<=>(const KernelPowerKey&) const = default;  // NOLINT: clang-tidy 14 sees a null pointer
  bool operator==(const KernelPowerKey&) const = default;
};

// The kernels with one key in a recording, with the features by which similar kernels are found.
struct ObservedKernels {
  KernelPowerKey kernel_key;
  double blocks = 0;
  double threads_per_block = 0;
  double time_s = 0;
  std::uint64_t count = 0;

  double mean_kernel_s() const { return count > 0 ? time_s / static_cast<double>(count) : 0; }
};

struct KernelPower {
  std::string gpu;  // GPU model: "NVIDIA H200"
  KernelPowerKey kernel_key;
  double blocks = 0;                     // mean over the kernels
  double threads_per_block = 0;          // mean over the kernels
  double mean_kernel_s = 0;              // mean duration
  double watts = 0;                      // mean of the findings, weighted by their precisions
  double precision = 0;                  // sum of the precisions of the findings: 1 / relative variance
  double sum_of_squared_precisions = 0;  // sum of the squares of these precisions
  double cochran_q = 0;                  // sum over findings of precision times squared relative deviation from `watts`
  double measured_kernel_s = 0;          // total duration of its kernels in the recordings that identify it
  std::uint64_t recordings = 0;          // number of findings; 0: not measured, `watts` comes from similar kernels

  bool is_from_similar_kernels() const { return recordings == 0; }
};

}  // namespace joulemap
