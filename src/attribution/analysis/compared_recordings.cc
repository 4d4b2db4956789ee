// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/compared_recordings.h"

#include <algorithm>

#include "attribution/analysis/report_builder.h"
#include "base/clock.h"
#include "model/run_rates.h"

namespace joulemap::attribution {
namespace {

struct ReadSteps {
  std::vector<StepEnergy> steps;
  bool is_probed = false;
  double elapsed_s = 0;
  std::optional<double> energy_j;
};

// Combines the energy of all machines, from the rows, with the step times of the machine that recorded the most steps.
std::vector<StepEnergy> placed_steps(const std::vector<MachineView>& machines, const std::vector<ReportRow>& rows) {
  std::vector<StepEnergy> steps;
  for (const MachineView& machine : machines) {
    if (machine.steps.size() <= steps.size()) continue;
    steps.clear();
    for (const NumberedEnergy& step : machine.steps) {
      steps.push_back({seconds(step.span.begin_ns - machine.span.begin_ns),
                       seconds(step.span.end_ns - machine.span.begin_ns), step.time_s, step.energy_j.value_or(0)});
    }
  }
  for (std::size_t i = 0; i < std::min(steps.size(), rows.size()); ++i) {
    steps[i].energy_j = rows[i].energy_j.value_or(0);
  }
  return steps;
}

Result<ReadSteps> read_steps(const std::string& file) {
  const std::vector<std::string> files = {file};
  Result<RecordingAnalysis> found = analyse_recording(files, {.levels = {RowLevel::step}, .with_step_times = true});
  if (!found) return std::move(found).error();
  const LedgerResult& level = found->ledgers[RowLevel::step];
  ReadSteps read{placed_steps(found->machine_views, level.rows), found->summary.probe.has_value()};
  const RunRates rates = run_rates(found->summary);  // without probing
  read.elapsed_s = rates.time_s;
  read.energy_j = rates.energy_j;
  return read;
}

// Probing follows the last step and identifies the powers of kernels, so rows of a probed run extend to its end.
Result<RunReports> read_rows(const std::string& file, ReadSteps read, RowLevel level, bool is_steady) {
  const std::vector<std::string> files = {file};
  RunReports reports{.rows = {}, .steps = std::move(read.steps), .is_steady = is_steady};
  reports.steady_state = find_steady_state(reports.steps);
  reports.elapsed_s = read.elapsed_s;
  reports.energy_j = read.energy_j;
  ReportQuery query{.level = level};
  if (is_steady) {
    query.time_range.from_s = reports.steady_state->begin_s;
    if (!read.is_probed) query.time_range.to_s = reports.steady_state->end_s;
    reports.steps_in_rows = static_cast<double>(reports.steady_state->steps + (read.is_probed ? 1 : 0));
  }
  Result<ReportResult> rows = build_report(files, query);
  if (!rows) return std::move(rows).error();
  reports.rows = std::move(*rows);
  if (is_steady && read.is_probed) reports.rows.idle.clear();  // contains that of probing and shutdown
  return reports;
}

}  // namespace

Result<RunDifference> compare_recordings(std::span<const std::string> a, std::span<const std::string> b, RowLevel level,
                                         const ComparisonQuery& query) {
  std::vector<std::string> files(a.begin(), a.end());
  files.insert(files.end(), b.begin(), b.end());
  std::vector<ReadSteps> read;
  std::vector<std::optional<SteadyState>> steady;
  for (const std::string& file : files) {
    Result<ReadSteps> steps = read_steps(file);
    if (!steps) return std::move(steps).error();
    steady.push_back(find_steady_state(steps->steps));
    read.push_back(std::move(*steps));
  }
  const bool is_steady = can_compare_steady_states(steady, query);
  std::vector<RunReports> reports;
  for (std::size_t i = 0; i < files.size(); ++i) {
    Result<RunReports> one = read_rows(files[i], std::move(read[i]), level, is_steady);
    if (!one) return std::move(one).error();
    reports.push_back(std::move(*one));
  }
  const std::span<const RunReports> all = reports;
  return compare_runs(all.first(a.size()), all.subspan(a.size()), query);
}

}  // namespace joulemap::attribution
