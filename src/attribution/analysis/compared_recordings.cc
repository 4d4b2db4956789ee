// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/compared_recordings.h"

#include "attribution/analysis/operator_comparison.h"
#include "attribution/analysis/report_builder.h"
#include "attribution/analysis/steady_reports.h"
#include "model/background_row.h"

namespace joulemap::attribution {
namespace {

Result<RunReports> read_recording_rows(const std::string& file, RecordedSteps recorded_steps, RowLevel level,
                                       bool is_steady) {
  const std::vector<std::string> files = {file};
  RunReports reports{.rows = {}, .steps = std::move(recorded_steps.steps), .is_steady = is_steady};
  reports.steady_state = find_steady_state(reports.steps);
  reports.elapsed_s = recorded_steps.elapsed_s;
  reports.energy_j = recorded_steps.energy_j;
  if (recorded_steps.is_estimated) {  // only estimates are compared without other processes
    const Result<double> background_j = read_background_j(files);
    if (!background_j) return background_j.error();
    reports.whole_background_j = *background_j;
  }
  ReportQuery query{.level = level};
  if (is_steady) {
    query.time_range = make_steady_time_range(*reports.steady_state, recorded_steps.is_probed);
    query.program_end_s = reports.steady_state->end_s;
    reports.steps_in_rows = count_steps_in_rows(*reports.steady_state, recorded_steps.is_probed);
  }
  // Phases, because not every level has rows of other processes and of probing.
  std::vector<RowLevel> levels = {level};
  if (level != RowLevel::phase) levels.push_back(RowLevel::phase);
  Result<std::vector<ReportResult>> rows = build_reports(files, query, levels);
  if (!rows) return std::move(rows).error();
  reports.background_j = background_energy_j(rows->back().rows);
  reports.replayed_modules_j = probe_rows_energy_j(rows->back().rows);
  reports.rows = std::move(rows->front());
  keep_idle_energy_of_program(reports.rows, is_steady ? reports.steady_state : std::nullopt, recorded_steps.is_probed);
  return reports;
}

// The whole run at level work contains the steps whose operations are recorded, even if the compared part does not.
Result<OperatorRecording> read_operator_recording(const std::string& file, RunReports reports) {
  OperatorRecording recording{std::move(reports), {}};
  const ReportResult& rows = recording.reports.rows;
  recording.work.idle = rows.idle;
  if (!recording.reports.is_steady) {
    recording.work.work = collect_operator_work(rows, rows);
    return recording;
  }
  const Result<ReportResult> whole_run_report = build_report(std::span(&file, 1), {.level = RowLevel::work});
  if (!whole_run_report) return whole_run_report.error();
  recording.work.work = collect_operator_work(rows, *whole_run_report);
  return recording;
}

Result<RunDifference> compare_operator_work(std::span<const std::string> files, std::vector<RunReports> reports,
                                            std::size_t recording_count_a, const ComparisonQuery& query) {
  std::vector<OperatorRecording> recordings;
  for (std::size_t i = 0; i < files.size(); ++i) {
    Result<OperatorRecording> recording = read_operator_recording(files[i], std::move(reports[i]));
    if (!recording) return std::move(recording).error();
    recordings.push_back(std::move(*recording));
  }
  const std::span<const OperatorRecording> recordings_of_both_sides = recordings;
  return compare_operators(recordings_of_both_sides.first(recording_count_a),
                           recordings_of_both_sides.subspan(recording_count_a), query);
}

}  // namespace

Result<RunDifference> compare_recordings(std::span<const std::string> a, std::span<const std::string> b, RowLevel level,
                                         const ComparisonQuery& query) {
  std::vector<std::string> files(a.begin(), a.end());
  files.insert(files.end(), b.begin(), b.end());
  std::vector<RecordedSteps> recorded_steps;
  std::vector<std::optional<SteadyState>> steady;
  for (const std::string& file : files) {
    Result<RecordedSteps> steps = read_steps(std::span(&file, 1));
    if (!steps) return std::move(steps).error();
    steady.push_back(find_steady_state(steps->steps));
    recorded_steps.push_back(std::move(*steps));
  }
  const bool is_steady = can_compare_steady_states(steady, query);
  std::vector<RunReports> reports;
  for (std::size_t i = 0; i < files.size(); ++i) {
    Result<RunReports> run_reports = read_recording_rows(files[i], std::move(recorded_steps[i]), level, is_steady);
    if (!run_reports) return std::move(run_reports).error();
    reports.push_back(std::move(*run_reports));
  }
  if (level == RowLevel::work) return compare_operator_work(files, std::move(reports), a.size(), query);
  const std::span<const RunReports> reports_of_both_sides = reports;
  return compare_runs(reports_of_both_sides.first(a.size()), reports_of_both_sides.subspan(a.size()), query);
}

}  // namespace joulemap::attribution
