// SPDX-License-Identifier: Apache-2.0
//
// KernelPower: the power of a kernel class on one GPU model, estimated over all recordings that identify it. Entries of
// the kernel library (docs/attribution.md), also stored as a fixed copy in a recording. Plain data; watts, seconds.
// recording/kernel_power_library.h makes, merges and finds entries.
//
// A finding is a power with a relative standard deviation. Findings of several recordings differ by more than these
// deviations: clocks, temperature, other cards, other data. So an entry also stores the sums needed to estimate the
// variance between recordings (DerSimonian and Laird, "Meta-analysis in clinical trials", 1986).
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "model/activity.h"

namespace joulemap {

// The same code on about the same number of threads: assumed to have one power.
struct KernelPowerKey {
  KernelKind kind = KernelKind::kernel;
  std::string name;
  std::uint32_t size = 0;  // bit width of the number of threads: sizes within a factor of two are one class

  auto operator<=>(const KernelPowerKey&) const = default;  // NOLINT: clang-tidy 14 sees a null pointer
  bool operator==(const KernelPowerKey&) const = default;
};

// A class as it ran in a recording: the features that identify its kind.
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
  double blocks = 0;  // mean per kernel, like the next two
  double threads_per_block = 0;
  double mean_kernel_s = 0;
  double watts = 0;                      // mean of the findings, weighted by precision
  double precision = 0;                  // sum of 1 / relative variance of the findings
  double sum_of_squared_precisions = 0;  // sum of the squares of these
  double cochran_q = 0;          // sum of squared relative deviations of the findings from the mean, times precision
  double measured_kernel_s = 0;  // run time of its kernels in the recordings that identify it
  std::uint64_t recordings = 0;  // 0: not measured, taken from similar kernels

  bool is_from_similar_kernels() const { return recordings == 0; }
};

}  // namespace joulemap
