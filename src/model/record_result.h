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

// How far a running recording is.
struct LiveStatus {
  double elapsed_s = 0;
  std::optional<double> energy_j;  // of all counted domains, up to the last reading: measured, else estimated
  std::optional<double> power_w;   // mean since the last status
  bool is_estimated = false;
  std::uint64_t steps = 0;
  std::optional<double> step_j;  // mean since the first status with steps
};

struct RecordResult {
  std::vector<std::string> command;
  std::string file;  // path of the recording: the file, or its folder of parts when they could not be joined
  std::uint64_t file_bytes = 0;
  std::uint64_t samples = 0;       // samples read
  std::uint64_t lost_samples = 0;  // samples, including CPU times, that could not be written
  bool is_written = true;          // false: the recording contains nothing of the run
  double elapsed_s = 0;
  std::optional<int> exit_code;
  std::optional<int> signal;
  DomainTable energy;
  double overhead_cpu_s = 0;
  std::vector<SamplerCost> samplers;
  Diagnostics diagnostics;
};

}  // namespace joulemap
