// SPDX-License-Identifier: Apache-2.0
//
// KernelPower: the power of a kernel class on one GPU model, estimated over all recordings that identify it. Entries of
// the kernel library (docs/attribution.md), also stored as a fixed copy in a recording. Plain data, pure functions;
// watts, seconds.
//
// A finding is a power with a relative standard deviation. Findings of several recordings differ by more than these
// deviations: clocks, temperature, other cards, other data. So an entry also stores the sums needed to estimate the
// variance between recordings (DerSimonian and Laird, "Meta-analysis in clinical trials", 1986).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

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
KernelPowerKey kernel_key_of(const KernelClass& known);
// Code of a GPU that idles between kernels: no kernel has size 0.
KernelPowerKey idle_key();

// A class as it ran in a recording: the features that identify its kind.
struct ObservedKernels {
  KernelPowerKey kernel_key;
  double blocks = 0;
  double threads_per_block = 0;
  double time_s = 0;
  std::uint64_t count = 0;

  double mean_kernel_s() const { return count > 0 ? time_s / static_cast<double>(count) : 0; }
  // Both must have the same code.
  void add(const ObservedKernels& others);
};
ObservedKernels make_observed_kernels(const KernelClass& known, double time_s, std::uint64_t count);

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

// Converts one finding to an entry. `spread`: its relative standard deviation, above 0.
KernelPower entry_from_measurement(std::string gpu, const ObservedKernels& seen, double watts, double spread);
// Entry for a class that no recording identifies, with the power of similar kernels.
KernelPower entry_from_similar_kernels(std::string gpu, const ObservedKernels& seen, double watts, double spread);

// Both must have the same GPU and code.
void merge(KernelPower& known, const KernelPower& more);

// Predictive relative standard deviation of the power in another recording around `watts`.
double predictive_relative_sd(const KernelPower& known);

// Whether all values are finite, within bounds and consistent: files may contain invalid entries.
bool is_valid_entry(const KernelPower& known);

// The library is sorted by GPU and code, with unique keys. New findings are merged into existing entries. When a GPU
// has more than `most` entries, those with the least evidence are dropped. Returns how many were dropped.
inline constexpr std::size_t kMaxKernelPowers = 20'000;
std::size_t merge_into_library(std::vector<KernelPower>& library, std::vector<KernelPower> findings,
                               std::size_t most = kMaxKernelPowers);
// Returns null when the library has no entry. The library must be sorted, as merge_into_library leaves it.
const KernelPower* find_power(const std::vector<KernelPower>& library, const std::string& gpu,
                              const KernelPowerKey& kernel_key);

}  // namespace joulemap
