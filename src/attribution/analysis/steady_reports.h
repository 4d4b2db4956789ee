// SPDX-License-Identifier: Apache-2.0
//
// Reports on the steady state of a run: what a training costs once it is under way, without first calls, start-up and
// shutdown. So a short recording is representative of a long training.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attribution/analysis/report_builder.h"
#include "attribution/analysis/steady_state.h"
#include "base/result.h"
#include "model/report_result.h"

namespace joulemap::attribution {

// The steps of a recording with their energies.
struct RecordedSteps {
  std::vector<StepEnergy> steps;
  bool is_probed = false;
  double elapsed_s = 0;            // without probing
  std::optional<double> energy_j;  // of the run, without probing
  bool is_estimated = false;       // energy_j is an estimate
};

// `paths`: the files of one recording.
Result<RecordedSteps> read_steps(std::span<const std::string> paths);

// Energy of other processes in the run, without probing. Attributes energy, which takes longer than reading steps.
Result<double> read_background_j(std::span<const std::string> paths);

// The time range of the steady state in a query. Probing follows the last step and identifies the powers of kernels,
// so the range of a probed run extends to its end.
CommandTimeRange make_steady_time_range(const SteadyState& steady_state, bool is_probed);
// Number of steps whose work is in rows of that time range: those of a probed run include its last step.
double count_steps_in_rows(const SteadyState& steady_state, bool is_probed);
// Limits idle energy to that of the program, without probing. In the steady state of a probed run, rows include the last
// step and idle energy does not: it is scaled to the steps of the rows.
void keep_idle_energy_of_program(ReportResult& report, const std::optional<SteadyState>& steady_state, bool is_probed);

struct SteadyReports {
  std::vector<ReportResult> reports;        // at the requested levels
  std::optional<SteadyState> steady_state;  // none: the reports cover the whole run, which has too few steps
  bool is_probed = false;
  double steps_in_rows = 0;  // of the steady state; 0 without one
};

// Reports at several levels on the steady state, with the idle energy of the program (keep_idle_energy_of_program). On
// the whole query where it limits the time itself, or where the run has no steady state.
Result<SteadyReports> build_steady_reports(std::span<const std::string> paths, ReportQuery query,
                                           std::span<const RowLevel> levels);

}  // namespace joulemap::attribution
