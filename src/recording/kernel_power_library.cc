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
  double all = 1;
  for (const std::uint32_t side : sides) all *= std::max<std::uint32_t>(side, 1);
  return all;
}

auto kernel_library_key(const KernelPower& known) { return std::tie(known.gpu, known.kernel_key); }
bool has_smaller_library_key(const KernelPower& a, const KernelPower& b) {
  return kernel_library_key(a) < kernel_library_key(b);
}

bool is_within_bound(double value, double most) { return value >= 0 && value <= most; }

// Keeps the `most` entries of each GPU with the longest measured kernel time. Returns how many were dropped.
std::size_t drop_least_measured_entries(std::vector<KernelPower>& library, std::size_t most) {
  std::vector<KernelPower> kept;
  const std::size_t before = library.size();
  for (auto from = library.begin(); from != library.end();) {
    const auto to = std::find_if(from, library.end(), [&](const KernelPower& one) { return one.gpu != from->gpu; });
    if (static_cast<std::size_t>(to - from) > most) {
      std::stable_sort(from, to, [](const KernelPower& a, const KernelPower& b) {
        return a.measured_kernel_s > b.measured_kernel_s;
      });
      kept.insert(kept.end(), std::make_move_iterator(from),
                  std::make_move_iterator(from + static_cast<std::ptrdiff_t>(most)));
    } else {
      kept.insert(kept.end(), std::make_move_iterator(from), std::make_move_iterator(to));
    }
    from = to;
  }
  if (kept.size() == before) {
    library = std::move(kept);
    return 0;
  }
  std::sort(kept.begin(), kept.end(), has_smaller_library_key);
  library = std::move(kept);
  return before - library.size();
}

}  // namespace

// Kernels of one name whose numbers of threads have the same bit width share a key: varying shapes create few entries.
KernelPowerKey kernel_key_of(const KernelClass& known) {
  const double threads =
      std::min(product_of_dimensions(known.grid) * product_of_dimensions(known.block), kMaxGridThreads);
  return {known.kind, known.name, static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint64_t>(threads)))};
}

KernelPowerKey idle_power_key() { return {KernelKind::kernel, "idle", 0}; }

ObservedKernels observed_kernels_of_class(const KernelClass& known, double time_s, std::uint64_t count) {
  return {kernel_key_of(known), product_of_dimensions(known.grid), product_of_dimensions(known.block), time_s, count};
}

void add_observed_kernels(ObservedKernels& known, const ObservedKernels& more) {
  const double all_s = known.time_s + more.time_s;
  const double share = all_s > 0 ? more.time_s / all_s : 0.5;
  known.blocks += share * (more.blocks - known.blocks);
  known.threads_per_block += share * (more.threads_per_block - known.threads_per_block);
  known.time_s = all_s;
  known.count += more.count;
}

KernelPower make_measured_entry(std::string gpu, const ObservedKernels& seen, double watts, double spread) {
  KernelPower found = make_entry_from_similar_kernels(std::move(gpu), seen, watts, spread);
  found.measured_kernel_s = seen.time_s;
  found.recordings = 1;
  return found;
}

KernelPower make_entry_from_similar_kernels(std::string gpu, const ObservedKernels& seen, double watts, double spread) {
  const double precision = 1 / (spread * spread);
  return {std::move(gpu),
          seen.kernel_key,
          seen.blocks,
          seen.threads_per_block,
          seen.mean_kernel_s(),
          watts,
          precision,
          precision * precision,
          0,
          0,
          0};
}

void merge_kernel_power(KernelPower& known, const KernelPower& more) {
  // Precision and evidence saturate at the bounds of is_valid_kernel_power: beyond them the entry would be invalid and
  // discarded.
  const double precision = known.precision + more.precision;
  const double share = more.precision / precision;
  const double mean_w = known.watts + share * (more.watts - known.watts);
  const double relative_difference = mean_w > 0 ? (more.watts - known.watts) / mean_w : 0;
  const double cochran_q =
      known.cochran_q + more.cochran_q + known.precision * share * relative_difference * relative_difference;
  known.cochran_q = std::min(cochran_q, kMaxKernelPowerPrecision);
  known.watts = mean_w;
  known.precision = std::min(precision, kMaxKernelPowerPrecision);
  known.sum_of_squared_precisions = std::min(known.sum_of_squared_precisions + more.sum_of_squared_precisions,
                                             kMaxKernelPowerPrecision * kMaxKernelPowerPrecision);
  const double measured_kernel_s = known.measured_kernel_s + more.measured_kernel_s;
  const double kernel_time_share = measured_kernel_s > 0 ? more.measured_kernel_s / measured_kernel_s : 0.5;
  known.blocks += kernel_time_share * (more.blocks - known.blocks);
  known.threads_per_block += kernel_time_share * (more.threads_per_block - known.threads_per_block);
  known.mean_kernel_s += kernel_time_share * (more.mean_kernel_s - known.mean_kernel_s);
  known.measured_kernel_s = std::min(measured_kernel_s, kMaxKernelPowerPrecision);
  known.recordings =
      std::min(known.recordings, kMaxRecordingsPerEntry) + std::min(more.recordings, kMaxRecordingsPerEntry);
  known.recordings = std::min(known.recordings, kMaxRecordingsPerEntry);
}

double predictive_relative_sd(const KernelPower& known) {
  const double variance_of_mean = 1 / known.precision;
  if (known.is_from_similar_kernels())
    return std::clamp(std::sqrt(variance_of_mean), kMinKernelPowerRelativeSd, kMaxKernelPowerRelativeSd);
  const double recordings = static_cast<double>(known.recordings);
  const double free = recordings - 1;
  // DerSimonian-Laird estimate of the variance between recordings: the excess of Cochran's Q above `free`, its expected
  // value when findings differ only by their own errors.
  const double scale = known.precision - known.sum_of_squared_precisions / known.precision;
  const double between = free > 0 && scale > 0 ? std::max(known.cochran_q - free, 0.0) / scale : 0;
  const double usual = kPriorRecordingRelativeSd * kPriorRecordingRelativeSd;
  const double shrunk_variance = (free * between + kPriorRecordingCount * usual) / (free + kPriorRecordingCount);
  return std::clamp(std::sqrt(shrunk_variance + shrunk_variance / recordings + variance_of_mean),
                    kMinKernelPowerRelativeSd, kMaxKernelPowerRelativeSd);
}

bool is_valid_kernel_power(const KernelPower& known) {
  return is_within_bound(known.watts, kMaxKernelPower_w) && known.watts >= kMinKernelPower_w &&
         is_within_bound(known.precision, kMaxKernelPowerPrecision) && known.precision >= kMinKernelPowerPrecision &&
         is_within_bound(known.sum_of_squared_precisions, kMaxKernelPowerPrecision * kMaxKernelPowerPrecision) &&
         is_within_bound(known.cochran_q, kMaxKernelPowerPrecision) &&
         is_within_bound(known.measured_kernel_s, kMaxKernelPowerPrecision) &&
         is_within_bound(known.blocks, kMaxKernelPowerPrecision) &&
         is_within_bound(known.threads_per_block, kMaxKernelPowerPrecision) &&
         is_within_bound(known.mean_kernel_s, kMaxKernelPowerPrecision) && known.recordings <= kMaxRecordingsPerEntry;
}

std::size_t merge_into_kernel_library(std::vector<KernelPower>& library, std::vector<KernelPower> findings,
                                      std::size_t most) {
  library.insert(library.end(), std::make_move_iterator(findings.begin()), std::make_move_iterator(findings.end()));
  // Stable: existing entries stay before new ones, because the last bits of the sums depend on the order.
  std::stable_sort(library.begin(), library.end(), has_smaller_library_key);
  std::vector<KernelPower> merged;
  merged.reserve(library.size());
  for (KernelPower& one : library) {
    if (!merged.empty() && kernel_library_key(merged.back()) == kernel_library_key(one)) {
      merge_kernel_power(merged.back(), one);
    } else {
      merged.push_back(std::move(one));
    }
  }
  library = std::move(merged);
  return drop_least_measured_entries(library, most);
}

const KernelPower* find_kernel_power(const std::vector<KernelPower>& library, const std::string& gpu,
                                     const KernelPowerKey& kernel_key) {
  const auto at =
      std::lower_bound(library.begin(), library.end(), std::tie(gpu, kernel_key),
                       [](const KernelPower& one, const std::tuple<const std::string&, const KernelPowerKey&>& key) {
                         return kernel_library_key(one) < key;
                       });
  return at != library.end() && at->gpu == gpu && at->kernel_key == kernel_key ? &*at : nullptr;
}

}  // namespace joulemap::recording
