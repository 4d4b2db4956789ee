// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/steady_state.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "base/median.h"
#include "base/quadrature.h"
#include "statistics/bootstrap.h"

namespace joulemap::attribution {
namespace {

constexpr std::size_t kMinStepsForSteadyState = 12;
constexpr std::size_t kStepsPerBatch = 5;         // MSER-5
constexpr std::size_t kMinStepsForBatches = 100;  // with fewer steps, each is a batch
constexpr double kOutlierDeviations = 10;         // standard deviations, by the median absolute deviation
constexpr double kMaxOutlierFraction = 0.01;      // fraction of the steps: more frequent ones belong to the program
constexpr std::size_t kAutocorrelationBlockCount = 20;
constexpr double kTrimmedBlockFraction = 0.1;  // fraction of the blocks, on each side
constexpr double kMaxAutocorrelation = 0.7;    // upper bound: 20 blocks cannot show more
// Steps that differ by less than this fraction of their median are equal: readings have no finer resolution.
constexpr double kEqualStepTolerance = 1e-4;

struct MedianAndScaledMad {
  double median = 0;
  double deviation = 0;
};

MedianAndScaledMad compute_median_and_scaled_mad(std::span<const double> energies_j) {
  std::vector<double> values(energies_j.begin(), energies_j.end());
  MedianAndScaledMad median_and_mad{statistics::median_of(values), 0};
  for (double& value : values) value = std::abs(value - median_and_mad.median);
  median_and_mad.deviation =
      std::max(kMadToStandardDeviation * statistics::median_of(values), kEqualStepTolerance * median_and_mad.median);
  return median_and_mad;
}

std::vector<double> compute_block_means(std::span<const double> values, std::size_t count) {
  std::vector<double> means(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t block_begin = i * values.size() / count;
    const std::size_t block_end = (i + 1) * values.size() / count;
    for (std::size_t k = block_begin; k < block_end; ++k)
      means[i] += values[k] / static_cast<double>(block_end - block_begin);
  }
  return means;
}

// Number of batches to truncate: at most half.
std::size_t count_truncated_batches(const std::vector<double>& batches) {
  double sum = 0;
  double squares = 0;
  double min_statistic = 0;
  std::size_t best_truncated_count = 0;
  for (std::size_t remaining_count = 1; remaining_count <= batches.size(); ++remaining_count) {
    const double value = batches[batches.size() - remaining_count] - batches.back();  // avoids cancellation
    sum += value;
    squares += value * value;
    const std::size_t truncated = batches.size() - remaining_count;
    if (2 * truncated > batches.size()) continue;
    const auto n = static_cast<double>(remaining_count);
    const double mser_statistic = std::max(squares - sum * sum / n, 0.0) / (n * n);
    if (2 * (truncated + 1) > batches.size() || mser_statistic <= min_statistic) {
      min_statistic = mser_statistic;
      best_truncated_count = truncated;
    }
  }
  return best_truncated_count;
}

struct BlockMeanEstimate {
  double mean = 0;
  double standard_error = 0;
  double autocorrelation = 0;
};

double lag_one_autocorrelation(const std::vector<double>& values, double mean) {
  double products = 0;
  double squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    squares += (values[i] - mean) * (values[i] - mean);
    if (i > 0) products += (values[i] - mean) * (values[i - 1] - mean);
  }
  if (squares <= 0) return 0;
  // Bias correction for few values (Kendall 1954).
  const double biased_autocorrelation = products / squares;
  const double bias = (1 + 3 * biased_autocorrelation) / static_cast<double>(values.size());
  return std::clamp(biased_autocorrelation + bias, 0.0, kMaxAutocorrelation);
}

BlockMeanEstimate estimate_block_mean(std::span<const double> energies_j) {
  std::vector<double> blocks = compute_block_means(energies_j, std::min(kAutocorrelationBlockCount, energies_j.size()));
  std::vector<double> sorted_blocks = blocks;
  std::sort(sorted_blocks.begin(), sorted_blocks.end());
  const auto trimmed_count =
      static_cast<std::size_t>(kTrimmedBlockFraction * static_cast<double>(sorted_blocks.size()));
  BlockMeanEstimate result;
  for (std::size_t i = trimmed_count; i < sorted_blocks.size() - trimmed_count; ++i) result.mean += sorted_blocks[i];
  result.mean /= static_cast<double>(sorted_blocks.size() - 2 * trimmed_count);
  // Winsorized: trimmed values count as the nearest untrimmed one.
  double sum = 0;
  for (double& block : blocks) {
    block = std::clamp(block, sorted_blocks[trimmed_count], sorted_blocks[sorted_blocks.size() - 1 - trimmed_count]);
    sum += block;
  }
  const auto n = static_cast<double>(blocks.size());
  double squares = 0;
  for (const double block : blocks) squares += (block - sum / n) * (block - sum / n);
  result.autocorrelation = lag_one_autocorrelation(blocks, sum / n);
  const double untrimmed_fraction = 1 - 2 * static_cast<double>(trimmed_count) / n;
  const double variance_inflation = (1 + result.autocorrelation) / (1 - result.autocorrelation);
  result.standard_error = std::sqrt(squares / (n - 1) / n * variance_inflation) / untrimmed_fraction;
  return result;
}

// Divides the evaluation during the steady state among its steps.
void add_evaluation_energy(SteadyState& steady, std::span<const StepEnergy> all_steps) {
  double energy_j = 0;
  double time_s = 0;
  double sum_of_squares_j2 = 0;
  double count = 0;
  for (const StepEnergy& step : all_steps) {
    if (!step.is_evaluation || step.begin_s < steady.begin_s || step.end_s > steady.end_s) continue;
    energy_j += step.energy_j;
    time_s += step.time_s;
    sum_of_squares_j2 += step.energy_j * step.energy_j;
    count += 1;
  }
  if (count == 0) return;
  const auto steps = static_cast<double>(steady.steps);
  const double variance_j2 =
      count > 1 ? std::max(sum_of_squares_j2 - energy_j * energy_j / count, 0.0) / (count - 1) : 0;
  steady.energy_j += energy_j / steps;
  steady.time_s += time_s / steps;
  steady.energy_sum_j += energy_j;
  steady.standard_error_j = add_in_quadrature(steady.standard_error_j, std::sqrt(variance_j2 * count) / steps);
}

std::vector<StepEnergy> exclude_evaluation_steps(std::span<const StepEnergy> all_steps) {
  std::vector<StepEnergy> steps;
  std::ranges::copy_if(all_steps, std::back_inserter(steps),
                       [](const StepEnergy& step) { return !step.is_evaluation; });
  return steps;
}

}  // namespace

std::optional<SteadyState> find_steady_state(std::span<const StepEnergy> all_steps) {
  const std::vector<StepEnergy> training_steps = exclude_evaluation_steps(all_steps);
  const std::span<const StepEnergy> steps = training_steps;
  if (steps.size() < kMinStepsForSteadyState) return std::nullopt;
  std::vector<double> energies_j;
  for (const StepEnergy& step : steps.first(steps.size() - 1)) energies_j.push_back(step.energy_j);
  // Clamps outliers: the truncation rule would otherwise remove all steps before one.
  const MedianAndScaledMad second_half =
      compute_median_and_scaled_mad(std::span(energies_j).subspan(energies_j.size() / 2));
  std::vector<double> clamped_energies_j = energies_j;
  for (double& energy_j : clamped_energies_j) {
    energy_j = std::clamp(energy_j, second_half.median - kOutlierDeviations * second_half.deviation,
                          second_half.median + kOutlierDeviations * second_half.deviation);
  }
  const std::size_t batch = clamped_energies_j.size() >= kMinStepsForBatches ? kStepsPerBatch : 1;
  const std::vector<double> batches = compute_block_means(clamped_energies_j, clamped_energies_j.size() / batch);
  const std::size_t truncated = count_truncated_batches(batches);

  SteadyState steady{.first_step = truncated * clamped_energies_j.size() / batches.size()};
  steady.steps = energies_j.size() - steady.first_step;
  steady.is_settled = 2 * (truncated + 1) <= batches.size();
  steady.begin_s = steps[steady.first_step].begin_s;
  steady.end_s = steps[energies_j.size() - 1].end_s;
  const std::span<const double> steady_energies_j = std::span(energies_j).subspan(steady.first_step);
  const MedianAndScaledMad median_and_mad = compute_median_and_scaled_mad(steady_energies_j);
  const auto is_outlier = [&](double energy_j) {
    return std::abs(energy_j - median_and_mad.median) > kOutlierDeviations * median_and_mad.deviation;
  };
  const auto outlier_count =
      static_cast<std::size_t>(std::count_if(steady_energies_j.begin(), steady_energies_j.end(), is_outlier));
  const bool are_outliers_rare =
      static_cast<double>(outlier_count) <= kMaxOutlierFraction * static_cast<double>(steady_energies_j.size());
  steady.outlier_steps = are_outliers_rare ? outlier_count : 0;
  std::vector<double> inlier_energies_j;
  for (std::size_t i = steady.first_step; i < energies_j.size(); ++i) {
    if (are_outliers_rare && is_outlier(energies_j[i])) continue;
    inlier_energies_j.push_back(energies_j[i]);
    steady.energy_sum_j += energies_j[i];
    steady.time_s += steps[i].time_s;
  }
  steady.time_s /= static_cast<double>(inlier_energies_j.size());
  const BlockMeanEstimate mean = estimate_block_mean(inlier_energies_j);
  steady.energy_j = mean.mean;
  steady.standard_error_j = mean.standard_error;
  steady.autocorrelation = mean.autocorrelation;
  add_evaluation_energy(steady, all_steps);
  return steady;
}

}  // namespace joulemap::attribution
