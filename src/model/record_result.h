// SPDX-License-Identifier: Apache-2.0
//
// RecordResult: the summary that `joulemap record` prints when the command has ended. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/diagnostics.h"
#include "model/domain_table.h"
#include "model/sampler_cost.h"

namespace joulemap {

// State of a running recording, for the line that `record` shows on a terminal.
struct LiveStatus {
  double elapsed_s = 0;
  std::optional<double> energy_j;  // of all counted domains up to the last reading: measured sum, else estimated sum
  std::optional<double> power_w;   // mean since the sensors had their last but one new value; none at first
  bool is_estimated = false;
  std::uint64_t steps = 0;
  std::optional<double> step_j;  // energy per step since the first status that had steps
};

struct RecordResult {
  std::vector<std::string> command;
  std::string file;  // path of the recording: the file, or the folder of its parts when they could not be merged
  std::uint64_t file_bytes = 0;
  std::uint64_t samples = 0;       // number of samples read from sensors
  std::uint64_t lost_samples = 0;  // number of samples, of sensors or CPU times, that could not be written
  bool is_written = true;          // false: the file contains no data of this run
  double elapsed_s = 0;
  std::optional<int> exit_code;
  std::optional<int> signal;
  DomainTable energy;
  double overhead_cpu_s = 0;
  std::vector<SamplerCost> samplers;
  Diagnostics diagnostics;
};

}  // namespace joulemap
