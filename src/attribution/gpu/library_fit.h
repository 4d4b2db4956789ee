// SPDX-License-Identifier: Apache-2.0
//
// LibraryFit: class powers with a prior for each class, its own value and spread, from the kernel library's entry of
// the class or of its kind. What the observations cannot identify stays at the prior; what they identify follows them.
// All priors may be off by one common factor, the level, because cards, clocks and temperatures differ. The fit
// estimates it as well. Pure.
//
// draw() perturbs every prior by its spread and solves again. With randomly weighted observations, as the caller passes
// them, the draws have the spread of the posterior.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "attribution/gpu/interval_observations.h"
#include "statistics/nonnegative_least_squares.h"
#include "statistics/random.h"

namespace joulemap::attribution {

// Prior power of a class.
struct ClassPrior {
  double watts = 0;
  double spread = 0;      // relative standard deviation
  bool is_known = false;  // spread is smaller than the usual spread between classes
};

class LibraryFit {
 public:
  // `priors`: by class, idle last where it is known. `noise`: variance of an observation, in its units.
  LibraryFit(std::span<const ClassPrior> priors, const PowerPrior& prior, double noise);

  // Watts by class; the last is idle.
  std::vector<double> solve(const statistics::NormalEquations& sums) const;
  std::vector<double> draw(const statistics::NormalEquations& sums, statistics::Random& random) const;
  // By class, idle last: fraction of its deviation from the prior that the observations identify, 0 .. 1.
  std::vector<double> data_fractions(const statistics::NormalEquations& sums) const;

 private:
  std::vector<double> solve(const statistics::NormalEquations& sums, std::span<const double> perturbed_w) const;
  std::vector<statistics::Prior> deviation_priors(std::span<const double> perturbed_w) const;

  std::vector<double> watts_;  // prior watts, 0 for idle
  std::vector<double> spread_w_;
  std::vector<double> precisions_;  // precisions of all, idle last
  double idle_w_ = 0;
  double level_precision_;
};

// Idle power of a GPU between kernels as a fraction of its busy power, where it is unknown.
inline constexpr double kDefaultIdleFraction = 0.25;

// Replaces a coarse fit in which nearly identical observations give a higher idle than busy power. Uses the library's
// busy and idle power or, without a library, defaults.
PowerPrior fallback_coarse_prior(std::span<const ClassPrior> priors, const IntervalObservations& observations);

// Observations that hardly separate classes repeat one another, and so do their errors. Returns the factor by which to
// reduce their number when weighed against a library: all of them where nothing is separated, so that they only
// determine the level. `identified_fractions`: by class, how much of it the observations identify (separable_groups.h).
double redundancy_factor(const IntervalObservations& observations, std::span<const double> identified_fractions);

// By class, idle last: true if the library contributes more to its power than the observations do.
std::vector<bool> is_prior_dominated(const LibraryFit& library, std::span<const ClassPrior> priors,
                                     const statistics::NormalEquations& sums);

}  // namespace joulemap::attribution
