// SPDX-License-Identifier: Apache-2.0
//
// StatResult: the result of `joulemap stat`: every run, and a summary of the runs. Plain data; seconds and joules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/diagnostics.h"
#include "model/domain_energy.h"
#include "model/energy_totals.h"
#include "model/sampler_cost.h"

namespace joulemap {

// One interval of `stat -I`, in seconds since the start. The energy comes from the readings within it and is not
// interpolated to its ends.
struct StatInterval {
  double from_s = 0;
  double to_s = 0;
  std::vector<DomainEnergy> domains;
};

struct StatRun {
  std::optional<std::int64_t> start_unix_ns;  // none when the measurement never began
  std::optional<std::int64_t> start_monotonic_ns;
  double elapsed_s = 0;
  std::optional<int> exit_code;  // none without a command
  std::optional<int> signal;
  std::vector<DomainEnergy> domains;
  EnergyTotals totals;
  std::vector<StatInterval> intervals;

  std::optional<double> user_s;  // CPU time of the command and its children
  std::optional<double> system_s;
  std::optional<double> process_cpu_s;  // user_s + system_s; for an attached process (-p), its CPU time
  std::optional<double> machine_cpu_s;  // CPU time of the whole machine during the run
  std::optional<double> process_share;  // process_cpu_s / machine_cpu_s
  double overhead_cpu_s = 0;            // CPU time of joulemap itself
  std::uint64_t missed_ticks = 0;
  std::vector<SamplerCost> samplers;  // cost by sensor
  Diagnostics diagnostics;
};

// Mean energy of one domain over the runs, and its interval.
struct StatSummary {
  std::string name;
  std::size_t runs_with_value = 0;
  std::optional<double> mean_j;
  std::optional<double> low_j;
  std::optional<double> high_j;
};

struct StatResult {
  std::vector<std::string> command;
  std::optional<int> attached_pid;
  double interval = 0.95;
  std::vector<StatRun> runs;
  std::vector<StatSummary> summary;
  Diagnostics diagnostics;  // of sensors and setup; those of a run are in StatRun
};

}  // namespace joulemap
