// SPDX-License-Identifier: Apache-2.0
//
// Fits the energy model of forward steps (step_terms.h) to the measured energy over time.
//
// - A counter updates less often than an engine steps. So observations are the intervals between counter updates: the
//   energy of an interval is the sum over the steps in it, plus idle power x time between steps.
// - Coefficients are nonnegative. Their priors are the durations of steps, which are known exactly: regressed on the
//   same terms, times the mean power. Observations override the priors as far as they determine the coefficients.
// - Within each interval the modelled energies are scaled to the measured energy, so that nothing is lost.
//
// Pure; joules, seconds, CLOCK_MONOTONIC nanoseconds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attribution/gpu/probe_spans.h"
#include "attribution/requests/step_terms.h"

namespace joulemap::attribution {

struct ObservedStep {
  std::int64_t begin_ns = 0;  // with the time in which its requests waited for it
  std::int64_t end_ns = 0;
  std::array<float, kStepTermCount> terms{};
};

class FittedStepModel {
 public:
  StepTerms coefficients{};  // J per unit of each term
  double idle_w = 0;
  bool is_regressed = false;
  std::size_t observations = 0;
  double relative_error = 0;
  // Energies of half seconds deviate from the model: mean squared deviation per joule, in J.
  double deviation_variance_per_joule_j = 0;

  // Modelled energy of a step, scaled to the measured energy.
  double mean_energy_scale(std::int64_t begin_ns, std::int64_t end_ns) const;
  // Standard deviation of the energy coefficients x amounts, given that the energy of all steps and idle time is known.
  // `term_amounts`: scaled by mean_energy_scale().
  double standard_error_j(const StepTerms& term_amounts) const;
  // Variance, in J squared, of attributed energy because of the deviations: scaling to the measured energy divides them
  // in proportion to the modelled energy, whereas each may belong to any of the requests that were active then.
  double deviation_variance_j2(double energy_j, double all_energy_j) const;
  // Standard deviation of one coefficient.
  double coefficient_standard_error(StepTerm term) const;

 private:
  friend FittedStepModel fit_step_model(std::vector<ObservedStep> steps, std::span<const std::int64_t> edges_ns,
                                        const EnergyFunction& energy_j);
  static constexpr std::size_t kRegressionUnknownCount = kStepTermCount + 1;  // and idle power

  std::vector<std::int64_t> edges_ns_;
  std::vector<double> energy_scales_;          // of the interval after each edge
  std::vector<double> energy_scale_integral_;  // up to each edge, in s
  std::array<double, kRegressionUnknownCount> amount_totals_{};
  std::vector<double> covariance_;  // of the unknowns, row by row
};

// `edges_ns`: times at which the energy is known best, such as updates of a counter; sorted. `energy_j`: energy between
// two times. Steps may overlap and come in any order; those without duration are ignored.
FittedStepModel fit_step_model(std::vector<ObservedStep> steps, std::span<const std::int64_t> edges_ns,
                               const EnergyFunction& energy_j);

}  // namespace joulemap::attribution
