// SPDX-License-Identifier: Apache-2.0
//
// The steady state of a run: its steps without warm-up (first calls compile, allocate and tune; clocks and power rise),
// without the last step, whose end no mark shows, and without rare steps whose energy is far from that of the others (a
// checkpoint, a pause). The marginal standard error rule truncates the warm-up (MSER-5: White 1997, "An effective
// truncation heuristic for bias reduction in simulation output"): it minimizes the standard error of the mean of the
// remaining steps, and never truncates more than half of the run.
//
// Evaluation steps are not judged. Their energy and time between the first and the last steady step are divided among
// the steady steps: they are part of what a training costs per step.
//
// The energy of a step is the trimmed mean of block means; its standard error is the winsorized one (Yuen 1974) of
// blocks, widened by their autocorrelation. Blocks, because neighbouring steps are correlated, and because a program
// may repeat every few steps (gradient accumulation). Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace joulemap::attribution {

// `begin_s` and `end_s`: seconds since the command began. `time_s` and `energy_j` exclude probing.
struct StepEnergy {
  double begin_s = 0;
  double end_s = 0;
  double time_s = 0;
  double energy_j = 0;
  bool is_evaluation = false;  // MarkKind::evaluation
};

struct SteadyState {
  std::size_t first_step = 0;     // index of the first steady step
  std::size_t steps = 0;          // number of steps from first_step to the last but one of the run
  std::size_t outlier_steps = 0;  // number of these that are excluded from the mean
  double begin_s = 0;
  double end_s = 0;
  double energy_j = 0;          // per step: a trimmed mean, and its part of the evaluation
  double energy_sum_j = 0;      // of all steps that the mean is taken over, and of the evaluation
  double standard_error_j = 0;  // of energy_j
  double time_s = 0;            // per step
  double autocorrelation = 0;   // of neighbouring blocks
  bool is_settled = true;       // false: the energy of a step still changes in the second half of the run
};

// Empty for fewer than 12 steps without evaluation steps.
std::optional<SteadyState> find_steady_state(std::span<const StepEnergy> all_steps);

}  // namespace joulemap::attribution
