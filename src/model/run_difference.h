// SPDX-License-Identifier: Apache-2.0
//
// RunDifference: what `joulemap diff A B` says: what each entry of two runs cost per step (or sample, epoch, run), and
// whether it grew, shrank or only differs by what cannot be told apart from noise. Plain data; joules per unit. The
// names follow the JSON that programs rely on (schema joulemap.diff/1).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/diagnostics.h"

namespace joulemap {

enum class Verdict : unsigned char {
  grew,
  shrank,
  within_noise,  // the interval of the difference holds 0
  appeared,      // only in B
  gone,          // only in A
  unknown,       // an energy, or how sure it is, is not known
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

// Of one run, per unit.
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
};

struct ComparedRun {
  std::vector<std::string> inputs;
  std::vector<std::string> command;
  double units = 1;              // steps, samples, epochs, or one run
  std::optional<double> time_s;  // per unit
  // Half width of the interval of the mean of its steps, as a share: how much they differ by themselves.
  std::optional<double> scatter;
  bool is_estimated = false;
};

struct RunDifference {
  std::string by;
  std::string per;  // "step", "sample", "epoch", "run"
  double interval = 0.9;
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
