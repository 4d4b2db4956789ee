// SPDX-License-Identifier: Apache-2.0
//
// RunDifference: the result of `joulemap diff A B`. Each side is a program with one or several recordings. For the
// total and each entry (layer, kernel ...), RunDifference contains the energy of both sides per unit (step, sample,
// epoch or run), and whether it grew, shrank or differs only by noise. Plain data; joules per unit. Field names follow
// the public JSON (schema joulemap.diff/1).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/diagnostics.h"
#include "model/idle_cause.h"

namespace joulemap {

enum class ChangeVerdict : unsigned char {
  grew,
  shrank,
  within_noise,  // the interval of the difference contains 0
  appeared,      // the entry exists only in B
  gone,          // the entry exists only in A
  unknown,       // the energy of a side, or its uncertainty, is unknown
};

constexpr std::string_view to_string(ChangeVerdict verdict) {
  switch (verdict) {
    case ChangeVerdict::grew:
      return "grew";
    case ChangeVerdict::shrank:
      return "shrank";
    case ChangeVerdict::within_noise:
      return "within_noise";
    case ChangeVerdict::appeared:
      return "new";
    case ChangeVerdict::gone:
      return "gone";
    case ChangeVerdict::unknown:
      break;
  }
  return "unknown";
}

// Energy of one side per unit: the mean over its recordings.
struct ComparedEnergy {
  double energy_j = 0;
  std::optional<double> low_j;
  std::optional<double> high_j;
  std::optional<double> waiting_j = {};  // energy of an idle GPU that waited for the entry; not part of energy_j
  std::optional<double> count = {};      // calls, or launches of kernels; none when unknown
  std::optional<double> time_s = {};     // summed duration of calls or kernels; none when unknown
};

// Energy of an idle device with one cause, per unit; 0 where a side has none.
struct IdleDifference {
  IdleCause cause = IdleCause::unknown;
  std::string device;
  double energy_a_j = 0;
  double energy_b_j = 0;
};

// A kernel of an operator group on one side.
struct OperatorGroupKernel {
  std::string name;
  double share = 0;  // of the energy of the group
};

// What ran in an operator group on one side, by energy, the largest first.
struct OperatorGroupContent {
  std::vector<std::string> operations;       // names as recorded, at most kMaxOperatorGroupNames; empty: unknown
  std::vector<OperatorGroupKernel> kernels;  // at most kMaxOperatorGroupNames; empty on a CPU
  std::vector<std::string> shapes;           // at most kMaxOperatorGroupNames; empty: unknown
  std::string precision;                     // of the most energy; empty: unknown
  double largest_tensor_elements = 0;        // of the largest tensor, mean by energy; 0: unknown
};
inline constexpr std::size_t kMaxOperatorGroupNames = 4;

// Why the energy of an operator group differs. The names of codes are part of the public JSON.
struct OperatorGroupCause {
  std::string code;  // "precision", "unfused" ...; empty: not changed
  std::string text;
};

// A group of `diff --by operator`: equal work under whatever names.
struct OperatorGroup {
  std::string kind;   // "matmul", "copy", "waiting" ...
  std::string phase;  // "forward", "recompute" ...; empty: none
  OperatorGroupContent a;
  OperatorGroupContent b;
  bool has_different_shapes = false;  // the sides are matched although their shapes differ
  OperatorGroupCause cause = {};
};

// A cause of the difference, with all groups that it explains.
struct DifferenceCause {
  std::string code;
  std::string text;
  double difference_j = 0;  // sum over its groups
  std::vector<std::string> kinds;
  std::vector<std::vector<std::string>> paths;  // of its groups, the largest difference first
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
  std::optional<double> relative_change;  // difference_j / energy of a; none without a
  ChangeVerdict verdict = ChangeVerdict::unknown;
  std::optional<double> p_adjusted = {};    // adjusted by Benjamini-Hochberg over all entries; none for the total
  std::optional<OperatorGroup> group = {};  // by operator
};

// What a steady-state comparison excludes from one recording.
struct SteadyStateExclusion {
  std::size_t warm_up_steps = 0;
  std::size_t outlier_steps = 0;  // rare steps that are far longer than the others
  double time_s = 0;              // time and energy of all that is excluded, including start-up and the last step
  std::optional<double> energy_j;
  bool is_settled = true;  // false: the energy per step still drifts in the second half of the run
};

struct ComparedRecording {
  std::string input;
  double steps = 0;  // steps of the whole run; 0: the run has none
  double units = 1;  // number of compared units: steps, samples, epochs or 1 run
  double energy_j = 0;
  // Standard error of energy_j relative to it, from the sensors and the variation between steps of the run.
  double within_run_relative_error = 0;
  std::optional<SteadyStateExclusion> exclusion = {};  // none: the whole run is compared
};

// One side of the comparison.
struct ComparedRun {
  std::vector<std::string> inputs;
  std::vector<std::string> command;
  double units = 1;              // number of compared units, summed over the recordings
  std::optional<double> time_s;  // mean time per unit
  // Half width of the 90 % interval of the energy per step, relative to it, from the variation between steps.
  std::optional<double> mean_step_half_width;
  bool is_estimated = false;
  std::vector<ComparedRecording> recordings = {};
};

// Standard deviation between runs of one program, relative to their mean.
struct RunVariation {
  double prior_sd = 0;
  double prior_degrees_of_freedom = 0;
  bool is_user_prior = false;     // prior_sd comes from --run-sd
  double sd = 0;                  // of one recording: prior updated by repetitions, plus the error within the run
  double degrees_of_freedom = 0;  // degrees of freedom of `sd`
};

// The smallest relative change of the total that `recordings` recordings per side detect with 80 % power.
struct DetectableChange {
  std::size_t recordings = 0;
  double relative_change = 0;
};

struct RunDifference {
  std::string by;
  std::string per;  // "step", "sample", "epoch", "run"
  double interval = 0.9;
  bool is_steady = false;         // steady states are compared; else whole runs
  double entry_confidence = 0.9;  // confidence level of intervals of entries, adjusted for the number of entries
  RunVariation variation = {};
  // The smallest relative change of the total that the given recordings detect with 80 % power.
  std::optional<double> smallest_detectable_change = {};
  // The same for 1, 3 and 5 recordings per side.
  std::vector<DetectableChange> detectable_changes = {};
  ComparedRun a;
  ComparedRun b;
  std::vector<std::string> domains;  // domains in the total
  DifferenceEntry total;
  std::vector<DifferenceEntry> entries;      // largest difference first
  std::vector<DifferenceCause> causes = {};  // by operator: largest part of the difference first
  std::vector<IdleDifference> idle = {};     // largest difference first
  std::optional<double> failure_threshold;   // --fail-over as a fraction; none without the option
  bool failed = false;                       // the total grew beyond the noise, by more than failure_threshold
  Diagnostics diagnostics;
};

}  // namespace joulemap
