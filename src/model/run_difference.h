// SPDX-License-Identifier: Apache-2.0
//
// RunDifference: the result of `joulemap diff`: what each entry of two programs costs per step (or sample, epoch, run),
// from one recording of each or several, and whether it grew, shrank or differs by no more than noise. Plain data;
// joules per unit. The names follow the JSON that programs rely on (schema joulemap.diff/1).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/diagnostics.h"

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

// Of one side, per unit: the mean over its recordings.
struct ComparedEnergy {
  double energy_j = 0;
  std::optional<double> low_j;
  std::optional<double> high_j;
};

struct DifferenceEntry {
  std::vector<std::string> path;
  std::string name;
  std::string display_name;
  std::string device;
  std::optional<ComparedEnergy> a;
  std::optional<ComparedEnergy> b;
  std::optional<double> difference_j;  // of b from a; what is missing in one of them counts as 0 there
  std::optional<double> low_j;
  std::optional<double> high_j;
  std::optional<double> relative;  // to a
  Verdict verdict = Verdict::unknown;
  std::optional<double> p_adjusted = {};  // of entries: by Benjamini and Hochberg, over all of them
};

// What a comparison of steady states leaves out of one recording.
struct LeftOut {
  std::size_t warm_up_steps = 0;
  std::size_t long_steps = 0;  // rare ones
  double time_s = 0;           // of everything that is left out, start-up and shutdown too
  std::optional<double> energy_j;
  bool is_settled = true;  // false: the energy of a step still changes in the second half of the run
};

struct ComparedRecording {
  std::string input;
  double steps = 0;  // of the run; 0: it has none
  double units = 1;  // compared
  double energy_j = 0;
  // Standard error of the energy, as a share: by the sensors and by the variation of steps within the run.
  double within = 0;
  std::optional<LeftOut> left_out = {};  // nothing: the whole run is compared
};

// One side of the comparison.
struct ComparedRun {
  std::vector<std::string> inputs;
  std::vector<std::string> command;
  double units = 1;              // steps, samples, epochs or runs, of all recordings
  std::optional<double> time_s;  // per unit
  // Half width of the interval of the mean of a run's steps, as a share: the variation of steps within it.
  std::optional<double> scatter;
  bool is_estimated = false;
  std::vector<ComparedRecording> recordings = {};
};

// How much runs of one program differ, as standard deviations relative to their mean.
struct RunVariation {
  double prior_sd = 0;
  double prior_degrees_of_freedom = 0;
  bool is_given = false;          // the prior was: --run-sd
  double sd = 0;                  // of one recording: the prior, updated by repetitions, and the variation within it
  double degrees_of_freedom = 0;  // of that
};

// The smallest change of the total, as a share, that so many recordings a side find in 8 of 10 comparisons.
struct EstablishedChange {
  std::size_t recordings = 0;
  double relative = 0;
};

struct RunDifference {
  std::string by;
  std::string per;  // "step", "sample", "epoch", "run"
  double interval = 0.9;
  bool is_steady = false;       // steady states are compared; else whole runs
  double entry_interval = 0.9;  // level of the entries' intervals, which allows for how many there are
  RunVariation variation = {};
  std::optional<double> smallest_change = {};     // of the total, as a share, that these recordings can establish
  std::vector<EstablishedChange> establish = {};  // what 1, 3 and 5 a side could, at this variation
  ComparedRun a;
  ComparedRun b;
  std::vector<std::string> domains;  // whose energy the total is
  DifferenceEntry total;
  std::vector<DifferenceEntry> entries;  // what differs the most first
  std::optional<double> fail_over;       // a share, if one was given
  bool failed = false;                   // the total grew by more than that, and beyond the noise
  Diagnostics diagnostics;
};

}  // namespace joulemap
