// SPDX-License-Identifier: Apache-2.0
//
// RunDifference: the result of `joulemap diff`. It contains the cost of each entry of two programs per step (or sample,
// epoch, run), from one or several recordings of each, and whether it grew, shrank or differs only by noise. Plain
// data; joules per unit. Field names follow the public JSON (schema joulemap.diff/1).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/diagnostics.h"
#include "model/idle_cause.h"

namespace joulemap {

enum class Verdict : unsigned char {
  grew,
  shrank,
  within_noise,  // the interval of the difference contains 0
  appeared,      // only in B
  gone,          // only in A
  unknown,       // an energy, or its uncertainty, is not known
};

constexpr std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::grew:
      return "grew";
    case Verdict::shrank:
      return "shrank";
    case Verdict::within_noise:
      return "within_noise";
    case Verdict::appeared:
      return "new";
    case Verdict::gone:
      return "gone";
    case Verdict::unknown:
      break;
  }
  return "unknown";
}

// Energy of one side per unit: the mean over its recordings.
struct ComparedEnergy {
  double energy_j = 0;
  std::optional<double> low_j;
  std::optional<double> high_j;
  std::optional<double> waiting_j = {};  // of the idle GPU while it waited for this; not part of energy_j
};

// Energy of idle devices with one cause, per unit. 0 where a run has none.
struct IdleDifference {
  IdleCause cause = IdleCause::unknown;
  std::string device;
  double a_j = 0;
  double b_j = 0;
};

struct DifferenceEntry {
  std::vector<std::string> path;
  std::string name;
  std::string display_name;
  std::string device;
  std::optional<ComparedEnergy> a;
  std::optional<ComparedEnergy> b;
  std::optional<double> difference_j;  // b - a; an entry missing on one side counts as 0 there
  std::optional<double> low_j;
  std::optional<double> high_j;
  std::optional<double> relative_change;  // to a
  Verdict verdict = Verdict::unknown;
  std::optional<double> p_adjusted = {};  // of entries: Benjamini-Hochberg over all of them
};

// What a steady-state comparison excludes from one recording.
struct SteadyStateExclusion {
  std::size_t warm_up_steps = 0;
  std::size_t long_steps = 0;  // rare long steps
  double time_s = 0;           // of everything excluded, including start-up and shutdown
  std::optional<double> energy_j;
  bool is_settled = true;  // false: the energy of a step still drifts in the second half of the run
};

struct ComparedRecording {
  std::string input;
  double steps = 0;  // in the run; 0: it has none
  double units = 1;  // compared
  double energy_j = 0;
  // Relative standard error of the energy, from the sensors and the variation of steps within the run.
  double within_run_error = 0;
  std::optional<SteadyStateExclusion> exclusion = {};  // none: the whole run is compared
};

// One side of the comparison.
struct ComparedRun {
  std::vector<std::string> inputs;
  std::vector<std::string> command;
  double units = 1;              // steps, samples, epochs or runs, over all recordings
  std::optional<double> time_s;  // per unit
  // Relative half width of the interval of the mean step, from the variation of steps within the run.
  std::optional<double> mean_step_half_width;
  bool is_estimated = false;
  std::vector<ComparedRecording> recordings = {};
};

// Variation between runs of one program, as standard deviations relative to their mean.
struct RunVariation {
  double prior_sd = 0;
  double prior_degrees_of_freedom = 0;
  bool is_user_prior = false;     // the user set the prior: --run-sd
  double sd = 0;                  // of one recording: the prior updated by repetitions, plus the variation within the
                                  // run
  double degrees_of_freedom = 0;  // of sd
};

// The smallest relative change of the total that this number of recordings per side detects with 80 % power.
struct DetectableChange {
  std::size_t recordings = 0;
  double relative_change = 0;
};

struct RunDifference {
  std::string by;
  std::string per;  // "step", "sample", "epoch", "run"
  double interval = 0.9;
  bool is_steady = false;         // steady states are compared; else whole runs
  double entry_confidence = 0.9;  // confidence level of the entries' intervals, adjusted for the number of entries
  RunVariation variation = {};
  std::optional<double> smallest_detectable_change =
      {};  // smallest relative change of the total that these recordings can
           // establish
  std::vector<DetectableChange> detectable_changes =
      {};  // the same for 1, 3 and 5 recordings per side, at this variation
  ComparedRun a;
  ComparedRun b;
  std::vector<std::string> domains;  // domains in the total
  DifferenceEntry total;
  std::vector<DifferenceEntry> entries;     // largest difference first
  std::vector<IdleDifference> idle = {};    // largest difference first
  std::optional<double> failure_threshold;  // threshold as a fraction, if given
  bool failed = false;                      // the total grew by more than failure_threshold, beyond the noise
  Diagnostics diagnostics;
};

}  // namespace joulemap
