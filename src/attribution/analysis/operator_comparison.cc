// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/operator_comparison.h"

#include "attribution/analysis/operator_causes.h"

namespace joulemap::attribution {
namespace {

std::vector<RecordedWork> collect_recorded_work(std::span<const OperatorRecording> side) {
  std::vector<RecordedWork> work;
  for (const OperatorRecording& recording : side) work.push_back(recording.work);
  return work;
}

std::vector<RunReports> replace_report_rows(std::span<const OperatorRecording> side,
                                            std::vector<std::vector<ReportRow>> rows) {
  std::vector<RunReports> reports;
  for (std::size_t i = 0; i < side.size(); ++i) {
    reports.push_back(side[i].reports);
    reports.back().rows.rows = std::move(rows[i]);
  }
  return reports;
}

}  // namespace

Result<RunDifference> compare_operators(std::span<const OperatorRecording> a, std::span<const OperatorRecording> b,
                                        const ComparisonQuery& query) {
  MatchedWork matched = match_operator_work(collect_recorded_work(a), collect_recorded_work(b));
  const std::vector<RunReports> runs_a = replace_report_rows(a, std::move(matched.a));
  const std::vector<RunReports> runs_b = replace_report_rows(b, std::move(matched.b));
  Result<RunDifference> difference = compare_runs(runs_a, runs_b, query);
  if (!difference) return difference;
  add_operator_groups(*difference, matched);
  explain_operator_differences(*difference);
  return difference;
}

}  // namespace joulemap::attribution
