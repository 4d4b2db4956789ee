// SPDX-License-Identifier: Apache-2.0
//
// The difference of two groups of repeated runs, for few runs per group or a single one: a t interval whose variance
// has a prior. The relative variance of a run has a scaled inverse chi-squared prior. Repetitions update it, as in the
// moderated t statistic (Smyth 2004, "Linear models and empirical Bayes methods"). With one run per group the width of
// the interval depends on the prior alone. Pure; any thread.
#pragma once

#include <cstddef>
#include <span>

namespace joulemap::statistics {

// Prior of the relative standard deviation between runs of the same program. It counts like an estimate from
// repetitions with `degrees_of_freedom`.
struct VariationPrior {
  double relative_sd = 0;
  double degrees_of_freedom = 1;
};

// A value for each run, and the standard deviation of each value within its run, in the same unit. The mean of a group
// without runs is 0.
struct RunGroup {
  std::span<const double> run_means;
  std::span<const double> within_run_sds;
};

struct RunContrast {
  double mean_a = 0;
  double mean_b = 0;
  double relative_sd = 0;  // relative standard deviation of one run, between and within runs combined
  double standard_error_a = 0;
  double standard_error_b = 0;
  double degrees_of_freedom = 1;

  double difference() const { return mean_b - mean_a; }
  double standard_error() const;
};

RunContrast contrast_runs(const RunGroup& group_a, const RunGroup& group_b, const VariationPrior& prior);

// Student's t: the two-sided quantile at a confidence level such as 0.9, and the two-sided p of the ratio of a
// difference to its standard error.
double two_sided_t_quantile(double level, double degrees_of_freedom);
double p_value_of_t_ratio(double ratio, double degrees_of_freedom);

// The relative change that runs_a and runs_b runs detect in 8 of 10 comparisons at confidence `level`. `relative_sd` is
// that of one run, estimated with `degrees_of_freedom`. The default power is above 0.8, because the next comparison
// will estimate a different standard deviation.
double smallest_detectable_change(double relative_sd, double degrees_of_freedom, std::size_t runs_a, std::size_t runs_b,
                                  double level, double power = 0.85);

}  // namespace joulemap::statistics
