// SPDX-License-Identifier: Apache-2.0
//
// Entries of the kernel library: makes them from findings (powers measured in one recording), merges those of one key,
// and finds them. Pure functions; watts, seconds.
#pragma once

#include <string>
#include <vector>

#include "model/kernel_power.h"

namespace joulemap::recording {

KernelPowerKey kernel_key_of(const KernelClass& kernel_class);
// Key of the power of a GPU that idles between kernels. No kernel has its size, 0.
KernelPowerKey idle_power_key();

ObservedKernels observed_kernels_of_class(const KernelClass& kernel_class, double time_s, std::uint64_t count);
// Adds `other_kernels`, which must have the same key.
void add_observed_kernels(ObservedKernels& observed_kernels, const ObservedKernels& other_kernels);

// Converts one finding to an entry. `relative_sd`: its relative standard deviation, above 0.
KernelPower make_measured_entry(std::string gpu, const ObservedKernels& observed_kernels, double watts,
                                double relative_sd);
// Makes an entry for kernels whose own power could not be measured. `watts`: the power of similar kernels.
KernelPower make_entry_from_similar_kernels(std::string gpu, const ObservedKernels& observed_kernels, double watts,
                                            double relative_sd);

// Merges `other_kernel_power` into `kernel_power`. Both must have the same GPU and key.
void merge_kernel_power(KernelPower& kernel_power, const KernelPower& other_kernel_power);

// Predictive relative standard deviation of the power in another recording around `watts`.
double predictive_relative_sd(const KernelPower& kernel_power);

// Whether all values are within their bounds: files may contain invalid entries.
bool is_valid_kernel_power(const KernelPower& kernel_power);

// The library is sorted by GPU and kernel key, without duplicates. New findings are merged into existing entries. When
// a GPU has more than `max_entries_per_gpu` entries, those with the least evidence are dropped. Returns how many were
// dropped.
inline constexpr std::size_t kMaxKernelPowers = 20'000;
std::size_t merge_into_kernel_library(std::vector<KernelPower>& library, std::vector<KernelPower> findings,
                                      std::size_t max_entries_per_gpu = kMaxKernelPowers);
// Returns nullptr when the library has no such entry. The library must be sorted, as merge_into_kernel_library leaves it.
const KernelPower* find_kernel_power(const std::vector<KernelPower>& library, const std::string& gpu,
                                     const KernelPowerKey& kernel_key);

}  // namespace joulemap::recording
