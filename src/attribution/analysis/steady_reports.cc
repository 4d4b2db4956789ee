// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/steady_reports.h"

#include <algorithm>

#include "base/clock.h"
#include "model/background_row.h"
#include "model/run_rates.h"

namespace joulemap::attribution {
namespace {

// Combines the energy of all machines, from the rows, with the step times of the machine that recorded the most steps.
std::vector<StepEnergy> combine_step_energies(const std::vector<MachineView>& machines,
                                              const std::vector<ReportRow>& rows) {
  std::vector<StepEnergy> steps;
  const auto machine_with_most_steps =
      std::ranges::max_element(machines, {}, [](const MachineView& machine_view) { return machine_view.steps.size(); });
  if (machine_with_most_steps == machines.end()) return steps;
  for (std::size_t i = 0; i < machine_with_most_steps->steps.size(); ++i) {
    const StepOrEpochEnergy& step = machine_with_most_steps->steps[i];
    const std::optional<double> energy_j = i < rows.size() ? rows[i].energy_j : step.energy_j;
    steps.push_back({seconds(step.span.begin_ns - machine_with_most_steps->span.begin_ns),
                     seconds(step.span.end_ns - machine_with_most_steps->span.begin_ns), step.time_s,
                     energy_j.value_or(0), step.is_evaluation});
  }
  return steps;
}

}  // namespace

Result<RecordedSteps> read_steps(std::span<const std::string> paths) {
  Result<RecordingAnalysis> analysis =
      analyse_recording(paths, {.levels = {RowLevel::step}, .includes_step_times = true});
  if (!analysis) return std::move(analysis).error();
  const LedgerResult& level = analysis->ledgers[RowLevel::step];
  RecordedSteps recorded_steps{combine_step_energies(analysis->machine_views, level.rows),
                               analysis->summary.probe.has_value()};
  const RunRates rates = compute_run_rates(analysis->summary);  // without probing
  recorded_steps.elapsed_s = rates.time_s;
  recorded_steps.energy_j = rates.energy_j;
  recorded_steps.is_estimated = rates.is_estimated();
  return recorded_steps;
}

Result<double> read_background_j(std::span<const std::string> paths) {
  const Result<RecordingAnalysis> analysis = analyse_recording(paths, {.levels = {RowLevel::phase}});
  if (!analysis) return analysis.error();
  const double background_j = background_energy_j(analysis->ledgers.at(RowLevel::phase).rows);
  return (1 - probing_time_fraction(analysis->summary)) * background_j;
}

CommandTimeRange make_steady_time_range(const SteadyState& steady_state, bool is_probed) {
  CommandTimeRange range{.from_s = steady_state.begin_s, .to_s = {}};
  if (!is_probed) range.to_s = steady_state.end_s;
  return range;
}

double count_steps_in_rows(const SteadyState& steady_state, bool is_probed) {
  return static_cast<double>(steady_state.steps + (is_probed ? 1 : 0));
}

void keep_idle_energy_of_program(ReportResult& report, const std::optional<SteadyState>& steady_state, bool is_probed) {
  const double steps_factor =
      steady_state ? count_steps_in_rows(*steady_state, is_probed) / static_cast<double>(steady_state->steps) : 1;
  for (IdleEntry& entry : report.idle) {
    if (!entry.program_energy_j || !entry.energy_j) continue;
    const double energy_j = steps_factor * *entry.program_energy_j;
    const double energy_factor = *entry.energy_j > 0 ? energy_j / *entry.energy_j : 0;
    for (std::optional<double>* const bound : {&entry.low_j, &entry.high_j}) {
      if (*bound) **bound *= energy_factor;
    }
    entry.time_s = steps_factor * entry.program_time_s.value_or(entry.time_s);
    entry.energy_j = energy_j;
    entry.program_time_s = entry.program_energy_j = std::nullopt;
  }
  std::erase_if(report.idle, [](const IdleEntry& entry) { return entry.energy_j == 0 && entry.time_s == 0; });
}

Result<SteadyReports> build_steady_reports(std::span<const std::string> paths, ReportQuery query,
                                           std::span<const RowLevel> levels) {
  SteadyReports steady;
  if (query.time_range.is_whole_run()) {
    const Result<RecordedSteps> recorded_steps = read_steps(paths);
    if (!recorded_steps) return recorded_steps.error();
    steady.steady_state = find_steady_state(recorded_steps->steps);
    steady.is_probed = recorded_steps->is_probed;
    if (steady.steady_state) {
      query.time_range = make_steady_time_range(*steady.steady_state, recorded_steps->is_probed);
      query.program_end_s = steady.steady_state->end_s;
    }
  }
  Result<std::vector<ReportResult>> reports = build_reports(paths, query, levels);
  if (!reports) return std::move(reports).error();
  steady.reports = std::move(*reports);
  for (ReportResult& report : steady.reports)
    keep_idle_energy_of_program(report, steady.steady_state, steady.is_probed);
  if (steady.steady_state) steady.steps_in_rows = count_steps_in_rows(*steady.steady_state, steady.is_probed);
  return steady;
}

}  // namespace joulemap::attribution
