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

double median_of_sorted(std::span<const double> sorted) {
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

std::vector<double> bootstrap_mean_replicates(std::span<const double> values, const BootstrapOptions& options) {
  Random random(options.seed);
  std::vector<double> replicates(options.resamples);
  for (double& replicate : replicates) {
    double sums[2] = {0, 0};  // two independent sums, so that additions need not wait for each other
    draw_resample_indices(random, values.size(),
                          [&](std::size_t position, int half) { sums[half] += values[position]; });
    replicate = (sums[0] + sums[1]) / static_cast<double>(values.size());
  }
  return replicates;
}

// Median of a resample, from the number of times that each of the sorted values was drawn. Needs no sorting of the
// resample.
double median_of_resample(std::span<const double> sorted, std::span<const std::uint32_t> counts) {
  const std::size_t lower = (sorted.size() - 1) / 2;
  const std::size_t upper = sorted.size() / 2;
  std::size_t position = 0;
  std::size_t seen = counts[0];
  while (seen <= lower) seen += counts[++position];
  const double low = sorted[position];
  while (seen <= upper) seen += counts[++position];
  return lower == upper ? low : (low + sorted[position]) / 2;
}

std::vector<double> bootstrap_median_replicates(std::span<const double> sorted, const BootstrapOptions& options) {
  Random random(options.seed);
  std::vector<std::uint32_t> counts(sorted.size());
  std::vector<double> replicates(options.resamples);
  for (double& replicate : replicates) {
    std::ranges::fill(counts, 0U);
    draw_resample_indices(random, sorted.size(), [&](std::size_t position, int) { ++counts[position]; });
    replicate = median_of_resample(sorted, counts);
  }
  return replicates;
}

std::vector<double> jackknife_medians(std::span<const double> sorted) {
  std::vector<double> medians;
  if (sorted.size() < 2) return medians;
  const std::size_t left = sorted.size() - 1;
  for (std::size_t out = 0; out < sorted.size(); ++out) {
    const auto at = [&](std::size_t position) { return sorted[position < out ? position : position + 1]; };
    medians.push_back((at((left - 1) / 2) + at(left / 2)) / 2);
  }
  return medians;
}

std::vector<double> jackknife_estimates(std::span<const double> values, const Statistic& statistic) {
  std::vector<double> left(values.begin(), values.end());
  std::vector<double> results;
  if (left.size() < 2) return results;
  // Swaps each value in turn to the end and leaves out the last.
  for (std::size_t i = values.size(); i > 0; --i) {
    std::swap(left[i - 1], left.back());
    results.push_back(statistic(std::span(left).first(left.size() - 1)));
    std::swap(left[i - 1], left.back());
  }
  return results;
}

// Quantile of unsorted values, as quantile_of_sorted(). Reorders the values.
double quantile_of_unsorted(std::vector<double>& values, double probability) {
  const double position = probability * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(values.begin(), at, values.end());
  const double share = position - static_cast<double>(below);
  if (share == 0 || at + 1 == values.end()) return *at;
  return std::lerp(*at, *std::min_element(at + 1, values.end()), share);
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
                                            std::span<const double> jackknife, double tail) {
  const std::optional<double> a = bca_acceleration(jackknife);
  std::size_t less = 0;
  std::size_t equal = 0;
  // Sums of the same values in another order differ by rounding, which must not decide the side of a replicate.
  const double rounding_tolerance = 1e-13 * std::abs(estimate);
  for (const double replicate : replicates) {
    less += replicate < estimate - rounding_tolerance ? 1 : 0;
    equal += std::abs(replicate - estimate) <= rounding_tolerance ? 1 : 0;
  }
  const double share =
      (static_cast<double>(less) + static_cast<double>(equal) / 2) / static_cast<double>(replicates.size());
  if (!a || equal == replicates.size() || !(share > 0 && share < 1)) return std::nullopt;
  const double bias = normal_quantile(share);
  const auto bias_corrected_probability = [&](double z) {
    const double divisor = 1 - *a * (bias + z);
    return divisor > 0 ? normal_cdf(bias + (bias + z) / divisor) : -1;
  };
  const double z = normal_quantile(tail);
  const QuantileBounds bounds{bias_corrected_probability(z), bias_corrected_probability(-z)};
  if (bounds.low < 0 || bounds.high < 0) return std::nullopt;
  return bounds;
}

}  // namespace

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median_of(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  return median_of_sorted(sorted);
}

double quantile_of_sorted(std::span<const double> sorted, double probability) {
  const double position = probability * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

BootstrapInterval bca_interval(std::vector<double>& replicates, double estimate, std::span<const double> jackknife,
                               double confidence) {
  const double tail = (1 - confidence) / 2;
  const std::optional<QuantileBounds> bca = bca_quantiles(replicates, estimate, jackknife, tail);
  const QuantileBounds bounds = bca.value_or(QuantileBounds{tail, 1 - tail});
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
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const std::vector<double> jackknife = jackknife_medians(sorted);
  std::vector<double> replicates = bootstrap_median_replicates(sorted, options);
  return bca_interval(replicates, median_of_sorted(sorted), jackknife, options.confidence);
}

std::optional<BootstrapInterval> bootstrap(std::span<const double> values, const Statistic& statistic,
                                           const BootstrapOptions& options) {
  if (values.empty()) return std::nullopt;
  Random random(options.seed);
  std::vector<double> drawn(values.size());
  std::vector<double> replicates(options.resamples);
  for (double& replicate : replicates) {
    std::size_t i = 0;
    draw_resample_indices(random, values.size(), [&](std::size_t position, int) { drawn[i++] = values[position]; });
    replicate = statistic(drawn);
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
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t cell = next++; cell < cells.size(); cell = next++) {
      BootstrapOptions own = options;
      own.seed = bootstrap_cell_seed(options.seed, cell);
      intervals[cell] =
          centre == CentralTendency::mean ? bootstrap_mean(cells[cell], own) : bootstrap_median(cells[cell], own);
    }
  };
  const std::size_t wanted = threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> workers(std::min(wanted, std::max<std::size_t>(cells.size(), 1)) - 1);
  for (std::thread& worker : workers) worker = std::thread(work);
  work();
  for (std::thread& worker : workers) worker.join();
  return intervals;
}

}  // namespace joulemap::statistics
