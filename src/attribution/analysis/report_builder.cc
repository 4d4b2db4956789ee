// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/report_builder.h"

#include <utility>

namespace joulemap::attribution {
namespace {

// `result` is the summary of the run; adds the rows of one level.
void add_level_rows(ReportResult& result, RowLevel level, RecordingAnalysis& analysis) {
  result.by = row_level_name(level);
  if (level == RowLevel::domain) {
    add_domain_rows(result);
  } else {
    LedgerResult& ledger = analysis.ledgers[level];
    result.rows = std::move(ledger.rows);
    result.groups = std::move(ledger.groups);
    // A step's energy is an interval of the machine's energy: its basis is that of the totals.
    for (ReportRow& row : result.rows) {
      if (row.basis == to_string(Provenance::measured) && !result.totals.measured)
        row.basis = to_string(Provenance::estimated);
    }
    result.attributed_j = ledger.attributed_j;
    result.idle_j = ledger.idle_j;
    result.unattributed_j = ledger.unattributed_j;
    result.idle = std::move(ledger.idle);
    result.serving = std::move(ledger.serving);
    result.diagnostics.add_all(ledger.diagnostics);
    add_empty_level_diagnostic(result.rows, result.by, result.diagnostics);
  }
  add_missing_data_diagnostics(result, analysis.sources);
}

}  // namespace

Result<std::vector<ReportResult>> build_reports(std::span<const std::string> paths, const ReportQuery& query,
                                                std::span<const RowLevel> levels) {
  Result<RecordingAnalysis> analysis = analyse_recording(paths, {.levels = {levels.begin(), levels.end()},
                                                                 .mode = query.mode,
                                                                 .time_range = query.time_range,
                                                                 .library = query.library,
                                                                 .grouping = query.grouping,
                                                                 .excluded_domains = query.excluded_domains,
                                                                 .program_end_s = query.program_end_s});
  if (!analysis) return std::move(analysis).error();
  std::vector<ReportResult> reports(levels.size(), analysis->summary);
  for (std::size_t i = 0; i < levels.size(); ++i) add_level_rows(reports[i], levels[i], *analysis);
  return reports;
}

Result<ReportResult> build_report(std::span<const std::string> paths, const ReportQuery& query) {
  Result<std::vector<ReportResult>> reports = build_reports(paths, query, std::span(&query.level, 1));
  if (!reports) return std::move(reports).error();
  return std::move(reports->front());
}

}  // namespace joulemap::attribution
