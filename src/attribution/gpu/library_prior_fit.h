// SPDX-License-Identifier: Apache-2.0
//
// LibraryPriorFit: class powers with a prior of its own for each class, from the kernel library's entry of the class or
// of similar classes. A power that the observations cannot identify stays at the prior. All priors may be off by one
// common factor, the level, because cards, clocks and temperatures differ. The fit estimates the level as well. Pure.
//
// draw_replicate() perturbs every prior by its spread and solves again. Together with solutions for randomly weighted
// observations, such draws have the spread of the posterior.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "attribution/gpu/interval_observations.h"
#include "statistics/nonnegative_least_squares.h"
#include "statistics/random.h"

namespace joulemap::attribution {

// Prior power of a class.
struct KernelClassPrior {
  double watts = 0;
  double relative_sd = 0;  // relative standard deviation
  bool is_known = false;   // spread is smaller than the usual spread between classes
};

class LibraryPriorFit {
 public:
  // `priors`: by class, idle last; or empty, and then nothing may be solved. `prior`: for idle, where `priors` do not
  // know it. `noise`: variance of an observation, J^2.
  LibraryPriorFit(std::span<const KernelClassPrior> priors, const PowerPrior& prior, double noise);

  // Watts by class; the last is idle.
  std::vector<double> solve(const statistics::NormalEquations& sums) const;
  std::vector<double> draw_replicate(const statistics::NormalEquations& sums, statistics::Random& random) const;
  // By class, idle last: fraction of its deviation from the prior that the observations identify, 0 .. 1.
  std::vector<double> data_fractions(const statistics::NormalEquations& sums) const;

 private:
  std::vector<double> solve(const statistics::NormalEquations& sums, std::span<const double> perturbed_w) const;
  std::vector<statistics::Prior> make_deviation_priors(std::span<const double> perturbed_w) const;

  std::vector<double> prior_watts_;  // prior watts, 0 for idle
  std::vector<double> prior_sd_w_;
  std::vector<double> prior_precisions_;  // by class, idle last
  double idle_w_ = 0;
  double level_precision_;
};

// Idle power of a GPU between kernels as a fraction of its busy power, where it is unknown.
inline constexpr double kDefaultIdleFraction = 0.25;

// Replaces fit_busy_and_idle_prior() where nearly identical observations give a higher idle than busy power. Uses the
// library's busy and idle power or, without a library, defaults.
PowerPrior make_fallback_busy_and_idle_prior(std::span<const KernelClassPrior> priors,
                                             const IntervalObservations& observations);

// Observations that hardly separate classes repeat one another, and so do their errors. Returns the factor by which to
// increase their noise variance when they are compared with a library. Where nothing is separated, it is their
// number: together they then count as one observation and only determine the level. `identified_fractions`: by class,
// how much of its power the observations identify (separable_groups.h).
double redundancy_variance_factor(const IntervalObservations& observations,
                                  std::span<const double> identified_fractions);

// By class, idle last: true if the library contributes more to its power than the observations do. False for idle.
std::vector<bool> is_prior_dominated(const LibraryPriorFit& library, std::span<const KernelClassPrior> priors,
                                     const statistics::NormalEquations& sums);

}  // namespace joulemap::attribution
