// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/report_builder.h"

namespace joulemap::attribution {

Result<ReportResult> build_report(std::span<const std::string> paths, const ReportQuery& query) {
  Result<RecordingAnalysis> found = analyse_recording(paths, {.levels = {query.level},
                                                              .mode = query.mode,
                                                              .time_range = query.time_range,
                                                              .library = query.library,
                                                              .grouping = query.grouping,
                                                              .excluded_domains = query.excluded_domains});
  if (!found) return std::move(found).error();
  ReportResult result = std::move(found->summary);
  result.by = name_of(query.level);
  if (query.level == RowLevel::domain) {
    add_domain_rows(result);
  } else {
    LedgerResult& ledger = found->ledgers[query.level];
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
    result.diagnostics.add_all(ledger.diagnostics);
    note_empty_level(result.rows, result.by, result.diagnostics);
  }
  note_missing_data(result, found->sources);
  return result;
}

}  // namespace joulemap::attribution
