// SPDX-License-Identifier: Apache-2.0
#include "statistics/bootstrap.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <thread>

#include "statistics/random.h"
#include "statistics/ranks.h"

namespace joulemap::statistics {

namespace {

// Draws `size` indices of 0 .. size - 1 with replacement, two from the halves of each 64-bit random number. Calls
// visit(index, half) with half 0 or 1.
template <class Visit>
void draw_resample_indices(Random& random, std::size_t size, Visit visit) {
  for (std::size_t i = 0; i + 1 < size; i += 2) {
    const std::uint64_t bits = random.bits();
    visit(((bits >> 32) * size) >> 32, 0);
    visit(((bits & 0xffffffff) * size) >> 32, 1);
  }
  if (size % 2 == 1) visit(((random.bits() >> 32) * size) >> 32, 0);
}

double median_of_sorted(std::span<const double> sorted_values) {
  const std::size_t median_index = sorted_values.size() / 2;
  return sorted_values.size() % 2 == 1 ? sorted_values[median_index]
                                       : (sorted_values[median_index - 1] + sorted_values[median_index]) / 2;
}

std::vector<double> bootstrap_mean_replicates(std::span<const double> values, const BootstrapOptions& options) {
  Random random(options.seed);
  std::vector<double> replicates(options.resamples);
  for (double& replicate : replicates) {
    double sums[2] = {0, 0};  // two independent sums, so that additions need not wait for each other
    draw_resample_indices(random, values.size(),
                          [&](std::size_t position, int sum_index) { sums[sum_index] += values[position]; });
    replicate = (sums[0] + sums[1]) / static_cast<double>(values.size());
  }
  return replicates;
}

// Median of a resample, from the number of times that each of the sorted values was drawn. Needs no sorting of the
// resample.
double median_of_resample(std::span<const double> sorted_values, std::span<const std::uint32_t> counts) {
  const std::size_t lower_median_index = (sorted_values.size() - 1) / 2;
  const std::size_t upper_median_index = sorted_values.size() / 2;
  std::size_t position = 0;
  std::size_t cumulative_count = counts[0];
  while (cumulative_count <= lower_median_index) cumulative_count += counts[++position];
  const double low = sorted_values[position];
  while (cumulative_count <= upper_median_index) cumulative_count += counts[++position];
  return lower_median_index == upper_median_index ? low : (low + sorted_values[position]) / 2;
}

std::vector<double> bootstrap_median_replicates(std::span<const double> sorted_values,
                                                const BootstrapOptions& options) {
  Random random(options.seed);
  std::vector<std::uint32_t> counts(sorted_values.size());
  std::vector<double> replicates(options.resamples);
  for (double& replicate : replicates) {
    std::ranges::fill(counts, 0U);
    draw_resample_indices(random, sorted_values.size(), [&](std::size_t position, int) { ++counts[position]; });
    replicate = median_of_resample(sorted_values, counts);
  }
  return replicates;
}

std::vector<double> jackknife_medians(std::span<const double> sorted_values) {
  std::vector<double> medians;
  if (sorted_values.size() < 2) return medians;
  const std::size_t remaining_count = sorted_values.size() - 1;
  for (std::size_t out = 0; out < sorted_values.size(); ++out) {
    const auto remaining_value = [&](std::size_t position) {
      return sorted_values[position < out ? position : position + 1];
    };
    medians.push_back((remaining_value((remaining_count - 1) / 2) + remaining_value(remaining_count / 2)) / 2);
  }
  return medians;
}

std::vector<double> jackknife_estimates(std::span<const double> values, const Statistic& statistic) {
  std::vector<double> reordered_values(values.begin(), values.end());
  std::vector<double> results;
  if (reordered_values.size() < 2) return results;
  // Swaps each value in turn to the end and leaves out the last.
  for (std::size_t i = values.size(); i > 0; --i) {
    std::swap(reordered_values[i - 1], reordered_values.back());
    results.push_back(statistic(std::span(reordered_values).first(reordered_values.size() - 1)));
    std::swap(reordered_values[i - 1], reordered_values.back());
  }
  return results;
}

// Quantile of unsorted values, as quantile_of_sorted(). Reorders the values.
double quantile_of_unsorted(std::vector<double>& values, double probability) {
  const double position = probability * static_cast<double>(values.size() - 1);
  const auto lower_index = static_cast<std::size_t>(position);
  const auto lower_iterator = values.begin() + static_cast<std::ptrdiff_t>(lower_index);
  std::nth_element(values.begin(), lower_iterator, values.end());
  const double share = position - static_cast<double>(lower_index);
  if (share == 0 || lower_iterator + 1 == values.end()) return *lower_iterator;
  return std::lerp(*lower_iterator, *std::min_element(lower_iterator + 1, values.end()), share);
}

// BCa's acceleration: skewness of the jackknife values / (6 sqrt(n)). Nothing without values, or where leaving out a
// value changes nothing.
std::optional<double> bca_acceleration(std::span<const double> jackknife) {
  if (jackknife.empty()) return std::nullopt;
  const double mean = mean_of(jackknife);
  double squares = 0;
  double cubes = 0;
  for (const double value : jackknife) {
    const double distance = mean - value;
    squares += distance * distance;
    cubes += distance * distance * distance;
  }
  if (!(squares > 0)) return std::nullopt;
  return cubes / (6 * squares * std::sqrt(squares));
}

struct QuantileBounds {
  double low = 0;
  double high = 0;
};

// Probabilities whose quantiles of the replicates bound the interval; nothing where BCa is undefined.
std::optional<QuantileBounds> bca_quantiles(std::span<const double> replicates, double estimate,
                                            std::span<const double> jackknife, double tail_probability) {
  const std::optional<double> a = bca_acceleration(jackknife);
  std::size_t smaller_count = 0;
  std::size_t tied_count = 0;
  // Sums of the same values in another order differ by rounding, which must not decide the side of a replicate.
  const double rounding_tolerance = 1e-13 * std::abs(estimate);
  for (const double replicate : replicates) {
    smaller_count += replicate < estimate - rounding_tolerance ? 1 : 0;
    tied_count += std::abs(replicate - estimate) <= rounding_tolerance ? 1 : 0;
  }
  const double share = (static_cast<double>(smaller_count) + static_cast<double>(tied_count) / 2) /
                       static_cast<double>(replicates.size());
  if (!a || tied_count == replicates.size() || !(share > 0 && share < 1)) return std::nullopt;
  const double bias = normal_quantile(share);
  const auto bias_corrected_probability = [&](double z) {
    const double divisor = 1 - *a * (bias + z);
    return divisor > 0 ? normal_cdf(bias + (bias + z) / divisor) : -1;
  };
  const double z = normal_quantile(tail_probability);
  const QuantileBounds bounds{bias_corrected_probability(z), bias_corrected_probability(-z)};
  if (bounds.low < 0 || bounds.high < 0) return std::nullopt;
  return bounds;
}

}  // namespace

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median_of(std::span<const double> values) {
  std::vector<double> sorted_values(values.begin(), values.end());
  std::ranges::sort(sorted_values);
  return median_of_sorted(sorted_values);
}

double quantile_of_sorted(std::span<const double> sorted_values, double probability) {
  const double position = probability * static_cast<double>(sorted_values.size() - 1);
  const auto lower_index = static_cast<std::size_t>(position);
  const std::size_t upper_index = std::min(lower_index + 1, sorted_values.size() - 1);
  return std::lerp(sorted_values[lower_index], sorted_values[upper_index], position - static_cast<double>(lower_index));
}

BootstrapInterval bca_interval(std::vector<double>& replicates, double estimate, std::span<const double> jackknife,
                               double confidence) {
  const double tail_probability = (1 - confidence) / 2;
  const std::optional<QuantileBounds> bca = bca_quantiles(replicates, estimate, jackknife, tail_probability);
  const QuantileBounds bounds = bca.value_or(QuantileBounds{tail_probability, 1 - tail_probability});
  BootstrapInterval interval{estimate, 0, 0, !bca};
  interval.low = quantile_of_unsorted(replicates, bounds.low);
  interval.high = quantile_of_unsorted(replicates, bounds.high);
  return interval;
}

std::optional<BootstrapInterval> bootstrap_mean(std::span<const double> values, const BootstrapOptions& options) {
  if (values.empty()) return std::nullopt;
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  std::vector<double> jackknife;
  for (const double value : values) {
    if (values.size() > 1) jackknife.push_back((sum - value) / static_cast<double>(values.size() - 1));
  }
  std::vector<double> replicates = bootstrap_mean_replicates(values, options);
  return bca_interval(replicates, mean_of(values), jackknife, options.confidence);
}

std::optional<BootstrapInterval> bootstrap_median(std::span<const double> values, const BootstrapOptions& options) {
  if (values.empty()) return std::nullopt;
  std::vector<double> sorted_values(values.begin(), values.end());
  std::ranges::sort(sorted_values);
  const std::vector<double> jackknife = jackknife_medians(sorted_values);
  std::vector<double> replicates = bootstrap_median_replicates(sorted_values, options);
  return bca_interval(replicates, median_of_sorted(sorted_values), jackknife, options.confidence);
}

std::optional<BootstrapInterval> bootstrap(std::span<const double> values, const Statistic& statistic,
                                           const BootstrapOptions& options) {
  if (values.empty()) return std::nullopt;
  Random random(options.seed);
  std::vector<double> resample(values.size());
  std::vector<double> replicates(options.resamples);
  for (double& replicate : replicates) {
    std::size_t i = 0;
    draw_resample_indices(random, values.size(), [&](std::size_t position, int) { resample[i++] = values[position]; });
    replicate = statistic(resample);
  }
  return bca_interval(replicates, statistic(values), jackknife_estimates(values, statistic), options.confidence);
}

std::uint64_t bootstrap_cell_seed(std::uint64_t seed, std::size_t cell) {
  // Seeds are random numbers, so that cells are independent of each other and of the cells of seed + 1.
  return Random(Random(seed).bits() + static_cast<std::uint64_t>(cell)).bits();
}

std::vector<std::optional<BootstrapInterval>> bootstrap_cells(std::span<const std::vector<double>> cells,
                                                              CentralTendency centre, const BootstrapOptions& options,
                                                              unsigned threads) {
  std::vector<std::optional<BootstrapInterval>> intervals(cells.size());
  std::atomic<std::size_t> next_cell = 0;
  const auto process_cells = [&] {
    for (std::size_t cell = next_cell++; cell < cells.size(); cell = next_cell++) {
      BootstrapOptions cell_options = options;
      cell_options.seed = bootstrap_cell_seed(options.seed, cell);
      intervals[cell] = centre == CentralTendency::mean ? bootstrap_mean(cells[cell], cell_options)
                                                        : bootstrap_median(cells[cell], cell_options);
    }
  };
  const std::size_t max_threads = threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> workers(std::min(max_threads, std::max<std::size_t>(cells.size(), 1)) - 1);
  for (std::thread& worker : workers) worker = std::thread(process_cells);
  process_cells();
  for (std::thread& worker : workers) worker.join();
  return intervals;
}

}  // namespace joulemap::statistics
