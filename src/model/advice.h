// SPDX-License-Identifier: Apache-2.0
//
// Advice: ways to save energy in a recorded run, from `joulemap advise`. Plain data; joules and seconds of the examined
// part of the run. Field names follow the public JSON (schema joulemap.advice/1).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/diagnostics.h"

namespace joulemap {

struct Finding {
  std::string_view rule;              // stable code, such as "data_loading"
  std::string title;                  // what was found: "gpu0 waits for the DataLoader"
  std::string change;                 // what to change
  std::vector<std::string> evidence;  // sentences with the numbers that it follows from
  double energy_j = 0;                // energy that the change concerns
  // Energy that the change is expected to save, and its range: the interval of energy_j times the fraction of it that
  // such a change saves.
  double saved_energy_j = 0;
  double low_j = 0;
  double high_j = 0;
  std::optional<double> saved_time_s;  // time saved; none where the change does not shorten waiting
};

// The part of a run that the findings are about. The steady state, because what a training does only once matters less
// the longer it runs; the whole run where it has no steady state.
struct ExaminedRunPart {
  bool is_steady = false;
  double steps = 0;  // steps in the part; 0: unknown
};

// What findings are about: the GPUs of a run, or its program on the CPU if no energy of a GPU was recorded.
enum class AdvisedProcessor { gpu, cpu };

struct Advice {
  std::vector<std::string> inputs;
  std::vector<std::string> command;
  double interval = 0.9;
  ExaminedRunPart examined_run_part;
  AdvisedProcessor processor = AdvisedProcessor::gpu;
  // Energy of the part: of the GPUs without probing, or of the program on the CPU without other processes. None:
  // unknown, and no findings.
  std::optional<double> energy_j;
  std::vector<Finding> findings;  // the largest expected saving first
  Diagnostics diagnostics;
};

}  // namespace joulemap
