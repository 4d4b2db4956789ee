// SPDX-License-Identifier: Apache-2.0
//
// Builds the result that `joulemap report` prints. Reads the files two or three times: for the begin and end of the
// command, for the samples between them and the sums of what ran, and, except by domain, to attribute the energy.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attribution/analysis/recording_analysis.h"
#include "attribution/analysis/recording_survey.h"
#include "attribution/ledger/ledger.h"
#include "base/result.h"
#include "model/report_result.h"

namespace joulemap::attribution {

struct ReportQuery {
  RowLevel level = RowLevel::domain;
  AttributionMode mode = AttributionMode::regress;
  CommandTimeRange time_range;                           // limits the report, and the data that powers are fitted to
  std::optional<std::vector<KernelPower>> library = {};  // replaces the priors stored in the recording
  BranchSumOptions grouping = {};
  std::vector<DomainClass> excluded_domains = {};  // domains that are not counted
  // Seconds since the command began: idle energy after it is not of the program (IdleEntry::program_energy_j). None: the
  // end of time_range.
  std::optional<double> program_end_s = {};
};

// `paths`: the files of one recording, or of its parts. Fails if none is readable, if they do not belong together, or
// if they end before the requested time begins.
Result<ReportResult> build_report(std::span<const std::string> paths, const ReportQuery& query);
// The reports at several levels, in their order, in the time of one. `query.level` is not used.
Result<std::vector<ReportResult>> build_reports(std::span<const std::string> paths, const ReportQuery& query,
                                                std::span<const RowLevel> levels);

}  // namespace joulemap::attribution
