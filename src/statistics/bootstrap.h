// SPDX-License-Identifier: Apache-2.0
//
// Bootstrap confidence intervals of a statistic by BCa (Efron 1987): corrected for bias and, by a jackknife, for a
// variance that depends on the value (acceleration). Where BCa is undefined (all replicates equal or on one side, or
// all values equal) the bounds are plain percentiles of the replicates, and `is_degenerate` is set. Same seed and
// values give the same bits, with any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace joulemap::statistics {

struct BootstrapOptions {
  double confidence = 0.95;
  std::size_t resamples = 10'000;
  std::uint64_t seed = 1;
};

struct BootstrapInterval {
  double estimate = 0;  // statistic of the original values
  double low = 0;
  double high = 0;
  bool is_degenerate = false;  // BCa is undefined: percentiles of the replicates
};

using Statistic = std::function<double(std::span<const double>)>;

double mean_of(std::span<const double> values);
double median_of(std::span<const double> values);

// Nothing without values. bootstrap() takes any statistic; mean and median have faster implementations.
std::optional<BootstrapInterval> bootstrap_mean(std::span<const double> values, const BootstrapOptions& options = {});
std::optional<BootstrapInterval> bootstrap_median(std::span<const double> values, const BootstrapOptions& options = {});
std::optional<BootstrapInterval> bootstrap(std::span<const double> values, const Statistic& statistic,
                                           const BootstrapOptions& options = {});

enum class CentralTendency { mean, median };
// Intervals of many cells (each the repetitions of one configuration), distributed over threads (0: one for each CPU).
// Cell i is resampled with bootstrap_cell_seed(seed, i), so that the result does not depend on threads or on other
// cells. Empty cells give nothing.
std::vector<std::optional<BootstrapInterval>> bootstrap_cells(std::span<const std::vector<double>> cells,
                                                              CentralTendency centre,
                                                              const BootstrapOptions& options = {},
                                                              unsigned threads = 0);
std::uint64_t bootstrap_cell_seed(std::uint64_t seed, std::size_t cell);

// BCa interval from existing replicates. `jackknife` contains the statistic without each value in turn. Reorders the
// replicates.
BootstrapInterval bca_interval(std::vector<double>& replicates, double estimate, std::span<const double> jackknife,
                               double confidence);

// Quantile of sorted values by linear interpolation (numpy's default, R's type 7). `sorted_values` must not be empty.
double quantile_of_sorted(std::span<const double> sorted_values, double probability);

}  // namespace joulemap::statistics
