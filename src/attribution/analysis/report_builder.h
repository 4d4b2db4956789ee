// SPDX-License-Identifier: Apache-2.0
//
// From recordings to what `joulemap report` says. Reads the files two or three times, in bounded memory: once for when the
// command began and ended, once for the samples between and the sums of what ran, once to give each of that its part.
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
  Level level = Level::domain;
  Mode mode = Mode::regress;
  SecondsWithin within;                                  // nothing else is told of, or learnt from
  std::optional<std::vector<KernelPower>> library = {};  // instead of what the recording holds of one; empty: none
  Grouping grouping = {};
  std::vector<DomainClass> without = {};  // domains that are not counted
};

// The files of one recording, or of its parts. Fails when they cannot be read at all or do not belong together, and when
// they end before the time that is asked for begins.
Result<ReportResult> build_report(std::span<const std::string> paths, const ReportQuery& query);

}  // namespace joulemap::attribution
