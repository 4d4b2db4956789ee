// SPDX-License-Identifier: Apache-2.0
#include "recording/kernel_power_library.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

namespace joulemap::recording {
namespace {

// Prior of the relative standard deviation of a class's power between recordings, measured between two H200s. It has
// the weight of kPriorRecordingCount recordings of the class itself.
constexpr double kPriorRecordingRelativeSd = 0.05;
constexpr double kPriorRecordingCount = 3;

// Bounds of valid entries: files may contain invalid ones.
constexpr double kMinKernelPower_w = 0.1;
constexpr double kMaxKernelPower_w = 1e5;
constexpr double kMinKernelPowerPrecision = 1e-2;
constexpr double kMaxKernelPowerPrecision = 1e12;
constexpr std::uint64_t kMaxRecordingsPerEntry = 1'000'000'000'000;
constexpr double kMinKernelPowerRelativeSd = 1e-4;
constexpr double kMaxKernelPowerRelativeSd = 10;
constexpr double kMaxGridThreads = 0x1p60;

double product_of_dimensions(const std::array<std::uint32_t, 3>& sides) {
  double product = 1;
  for (const std::uint32_t side : sides) product *= std::max<std::uint32_t>(side, 1);
  return product;
}

auto kernel_library_key(const KernelPower& kernel_power) { return std::tie(kernel_power.gpu, kernel_power.kernel_key); }
bool has_smaller_library_key(const KernelPower& a, const KernelPower& b) {
  return kernel_library_key(a) < kernel_library_key(b);
}

bool is_within_bound(double value, double max_value) { return value >= 0 && value <= max_value; }

// Keeps the `max_entries_per_gpu` entries of each GPU with the longest measured kernel time. Returns how many were dropped.
std::size_t drop_least_measured_entries(std::vector<KernelPower>& library, std::size_t max_entries_per_gpu) {
  std::vector<KernelPower> retained_entries;
  const std::size_t original_entry_count = library.size();
  for (auto gpu_begin = library.begin(); gpu_begin != library.end();) {
    const auto gpu_end =
        std::find_if(gpu_begin, library.end(), [&](const KernelPower& entry) { return entry.gpu != gpu_begin->gpu; });
    if (static_cast<std::size_t>(gpu_end - gpu_begin) > max_entries_per_gpu) {
      std::stable_sort(gpu_begin, gpu_end, [](const KernelPower& a, const KernelPower& b) {
        return a.measured_kernel_s > b.measured_kernel_s;
      });
      retained_entries.insert(retained_entries.end(), std::make_move_iterator(gpu_begin),
                              std::make_move_iterator(gpu_begin + static_cast<std::ptrdiff_t>(max_entries_per_gpu)));
    } else {
      retained_entries.insert(retained_entries.end(), std::make_move_iterator(gpu_begin),
                              std::make_move_iterator(gpu_end));
    }
    gpu_begin = gpu_end;
  }
  if (retained_entries.size() == original_entry_count) {
    library = std::move(retained_entries);
    return 0;
  }
  std::sort(retained_entries.begin(), retained_entries.end(), has_smaller_library_key);
  library = std::move(retained_entries);
  return original_entry_count - library.size();
}

}  // namespace

// Kernels of one name whose numbers of threads have the same bit width share a key: varying shapes create few entries.
KernelPowerKey kernel_key_of(const KernelClass& kernel_class) {
  const double threads =
      std::min(product_of_dimensions(kernel_class.grid) * product_of_dimensions(kernel_class.block), kMaxGridThreads);
  return {kernel_class.kind, kernel_class.name,
          static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint64_t>(threads)))};
}

KernelPowerKey idle_power_key() { return {KernelKind::kernel, "idle", 0}; }

ObservedKernels observed_kernels_of_class(const KernelClass& kernel_class, double time_s, std::uint64_t count) {
  return {kernel_key_of(kernel_class), product_of_dimensions(kernel_class.grid),
          product_of_dimensions(kernel_class.block), time_s, count};
}

void add_observed_kernels(ObservedKernels& observed_kernels, const ObservedKernels& other_kernels) {
  const double total_time_s = observed_kernels.time_s + other_kernels.time_s;
  const double share = total_time_s > 0 ? other_kernels.time_s / total_time_s : 0.5;
  observed_kernels.blocks += share * (other_kernels.blocks - observed_kernels.blocks);
  observed_kernels.threads_per_block += share * (other_kernels.threads_per_block - observed_kernels.threads_per_block);
  observed_kernels.time_s = total_time_s;
  observed_kernels.count += other_kernels.count;
}

KernelPower make_measured_entry(std::string gpu, const ObservedKernels& observed_kernels, double watts,
                                double relative_sd) {
  KernelPower measured_entry = make_entry_from_similar_kernels(std::move(gpu), observed_kernels, watts, relative_sd);
  measured_entry.measured_kernel_s = observed_kernels.time_s;
  measured_entry.recordings = 1;
  return measured_entry;
}

KernelPower make_entry_from_similar_kernels(std::string gpu, const ObservedKernels& observed_kernels, double watts,
                                            double relative_sd) {
  const double precision = 1 / (relative_sd * relative_sd);
  return {std::move(gpu),
          observed_kernels.kernel_key,
          observed_kernels.blocks,
          observed_kernels.threads_per_block,
          observed_kernels.mean_kernel_s(),
          watts,
          precision,
          precision * precision,
          0,
          0,
          0};
}

void merge_kernel_power(KernelPower& kernel_power, const KernelPower& other_kernel_power) {
  // Precision and evidence saturate at the bounds of is_valid_kernel_power: beyond them the entry would be invalid and
  // discarded.
  const double precision = kernel_power.precision + other_kernel_power.precision;
  const double share = other_kernel_power.precision / precision;
  const double mean_w = kernel_power.watts + share * (other_kernel_power.watts - kernel_power.watts);
  const double relative_difference = mean_w > 0 ? (other_kernel_power.watts - kernel_power.watts) / mean_w : 0;
  const double cochran_q = kernel_power.cochran_q + other_kernel_power.cochran_q +
                           kernel_power.precision * share * relative_difference * relative_difference;
  kernel_power.cochran_q = std::min(cochran_q, kMaxKernelPowerPrecision);
  kernel_power.watts = mean_w;
  kernel_power.precision = std::min(precision, kMaxKernelPowerPrecision);
  kernel_power.sum_of_squared_precisions =
      std::min(kernel_power.sum_of_squared_precisions + other_kernel_power.sum_of_squared_precisions,
               kMaxKernelPowerPrecision * kMaxKernelPowerPrecision);
  const double measured_kernel_s = kernel_power.measured_kernel_s + other_kernel_power.measured_kernel_s;
  const double kernel_time_share =
      measured_kernel_s > 0 ? other_kernel_power.measured_kernel_s / measured_kernel_s : 0.5;
  kernel_power.blocks += kernel_time_share * (other_kernel_power.blocks - kernel_power.blocks);
  kernel_power.threads_per_block +=
      kernel_time_share * (other_kernel_power.threads_per_block - kernel_power.threads_per_block);
  kernel_power.mean_kernel_s += kernel_time_share * (other_kernel_power.mean_kernel_s - kernel_power.mean_kernel_s);
  kernel_power.measured_kernel_s = std::min(measured_kernel_s, kMaxKernelPowerPrecision);
  kernel_power.recordings = std::min(kernel_power.recordings, kMaxRecordingsPerEntry) +
                            std::min(other_kernel_power.recordings, kMaxRecordingsPerEntry);
  kernel_power.recordings = std::min(kernel_power.recordings, kMaxRecordingsPerEntry);
}

double predictive_relative_sd(const KernelPower& kernel_power) {
  const double variance_of_mean = 1 / kernel_power.precision;
  if (kernel_power.is_from_similar_kernels())
    return std::clamp(std::sqrt(variance_of_mean), kMinKernelPowerRelativeSd, kMaxKernelPowerRelativeSd);
  const double recordings = static_cast<double>(kernel_power.recordings);
  const double degrees_of_freedom = recordings - 1;
  // DerSimonian-Laird estimate of the variance between recordings: the excess of Cochran's Q above
  // `degrees_of_freedom`, its expected value when findings differ only by their own errors.
  const double scale = kernel_power.precision - kernel_power.sum_of_squared_precisions / kernel_power.precision;
  const double variance_between_recordings =
      degrees_of_freedom > 0 && scale > 0 ? std::max(kernel_power.cochran_q - degrees_of_freedom, 0.0) / scale : 0;
  const double prior_variance = kPriorRecordingRelativeSd * kPriorRecordingRelativeSd;
  const double shrunk_variance =
      (degrees_of_freedom * variance_between_recordings + kPriorRecordingCount * prior_variance) /
      (degrees_of_freedom + kPriorRecordingCount);
  return std::clamp(std::sqrt(shrunk_variance + shrunk_variance / recordings + variance_of_mean),
                    kMinKernelPowerRelativeSd, kMaxKernelPowerRelativeSd);
}

bool is_valid_kernel_power(const KernelPower& kernel_power) {
  return is_within_bound(kernel_power.watts, kMaxKernelPower_w) && kernel_power.watts >= kMinKernelPower_w &&
         is_within_bound(kernel_power.precision, kMaxKernelPowerPrecision) &&
         kernel_power.precision >= kMinKernelPowerPrecision &&
         is_within_bound(kernel_power.sum_of_squared_precisions, kMaxKernelPowerPrecision * kMaxKernelPowerPrecision) &&
         is_within_bound(kernel_power.cochran_q, kMaxKernelPowerPrecision) &&
         is_within_bound(kernel_power.measured_kernel_s, kMaxKernelPowerPrecision) &&
         is_within_bound(kernel_power.blocks, kMaxKernelPowerPrecision) &&
         is_within_bound(kernel_power.threads_per_block, kMaxKernelPowerPrecision) &&
         is_within_bound(kernel_power.mean_kernel_s, kMaxKernelPowerPrecision) &&
         kernel_power.recordings <= kMaxRecordingsPerEntry;
}

std::size_t merge_into_kernel_library(std::vector<KernelPower>& library, std::vector<KernelPower> findings,
                                      std::size_t max_entries_per_gpu) {
  library.insert(library.end(), std::make_move_iterator(findings.begin()), std::make_move_iterator(findings.end()));
  // Stable: existing entries stay before new ones, because the last bits of the sums depend on the order.
  std::stable_sort(library.begin(), library.end(), has_smaller_library_key);
  std::vector<KernelPower> merged_entries;
  merged_entries.reserve(library.size());
  for (KernelPower& entry : library) {
    if (!merged_entries.empty() && kernel_library_key(merged_entries.back()) == kernel_library_key(entry)) {
      merge_kernel_power(merged_entries.back(), entry);
    } else {
      merged_entries.push_back(std::move(entry));
    }
  }
  library = std::move(merged_entries);
  return drop_least_measured_entries(library, max_entries_per_gpu);
}

const KernelPower* find_kernel_power(const std::vector<KernelPower>& library, const std::string& gpu,
                                     const KernelPowerKey& kernel_key) {
  const auto matching_entry =
      std::lower_bound(library.begin(), library.end(), std::tie(gpu, kernel_key),
                       [](const KernelPower& entry, const std::tuple<const std::string&, const KernelPowerKey&>& key) {
                         return kernel_library_key(entry) < key;
                       });
  return matching_entry != library.end() && matching_entry->gpu == gpu && matching_entry->kernel_key == kernel_key
             ? &*matching_entry
             : nullptr;
}

}  // namespace joulemap::recording
