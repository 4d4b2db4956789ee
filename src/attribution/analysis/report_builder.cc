// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/report_builder.h"

namespace joulemap::attribution {

Result<ReportResult> build_report(std::span<const std::string> paths, const ReportQuery& query) {
  Result<Analysis> found = analyse(paths, {.levels = {query.level},
                                           .mode = query.mode,
                                           .within = query.within,
                                           .library = query.library,
                                           .grouping = query.grouping,
                                           .without = query.without});
  if (!found) return std::move(found).error();
  ReportResult result = std::move(found->summary);
  result.by = name_of(query.level);
  if (query.level == Level::domain) {
    add_domain_rows(result);
  } else {
    LedgerResult& told = found->levels[query.level];
    result.rows = std::move(told.rows);
    result.groups = std::move(told.groups);
    // A step's energy is an interval of the machine's energy: its basis is that of the totals.
    for (ReportRow& row : result.rows) {
      if (row.basis == to_string(Provenance::measured) && !result.totals.measured)
        row.basis = to_string(Provenance::estimated);
    }
    result.attributed_j = told.attributed_j;
    result.idle_j = told.idle_j;
    result.unattributed_j = told.unattributed_j;
    result.diagnostics.add_all(told.diagnostics);
    note_empty_level(result.rows, result.by, result.diagnostics);
  }
  note_what_is_missing(result, found->sources);
  return result;
}

}  // namespace joulemap::attribution
