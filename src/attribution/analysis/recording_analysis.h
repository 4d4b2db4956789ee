// SPDX-License-Identifier: Apache-2.0
//
// From recordings to everything that reports, pages and plots are made of, at as many levels as are wanted: powers are
// found once, and what ran is given its part at all levels in one look. Two or three looks in all, in bounded memory.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attribution/analysis/host_view.h"
#include "attribution/analysis/recording_survey.h"
#include "attribution/analysis/run_events.h"
#include "attribution/ledger/ledger.h"
#include "base/result.h"
#include "model/report_result.h"

namespace joulemap::attribution {

// Finer than any terminal.
inline constexpr std::size_t kReportSlices = 240;

struct AnalysisQuery {
  std::vector<Level> levels;
  Mode mode = Mode::regress;
  SecondsWithin within = {};
  std::optional<std::vector<KernelPower>> library = {};  // instead of what the recording holds of one
  std::size_t slices = kReportSlices;                    // of power over time
  std::optional<ViewLimits> views = {};                  // what happened when, too
  Grouping grouping = {};
  std::vector<DomainClass> without = {};  // domains that are not counted
  bool step_times = false;                // when steps and epochs were, without the rest of the views
};

struct Analysis {
  ReportResult summary;  // without rows
  std::vector<SurveyedSource> sources;
  std::map<Level, LedgerResult> levels;  // but Level::domain
  // Where views are wanted; of step times the machines alone.
  std::vector<MachineView> machines = {};
  RunEvents events = {};
  std::map<std::string, DomainClass> class_of = {};  // of domains
};

// The files of one recording, or of its parts. Fails when they cannot be read at all or do not belong together, and when
// they end before the time that is asked for begins.
Result<Analysis> analyse(std::span<const std::string> paths, const AnalysisQuery& query);

// A row for each domain that is counted: measured ones; estimated ones where nothing was measured.
void add_domain_rows(ReportResult& result);
// What a recording should hold and does not, as diagnostics.
void note_what_is_missing(ReportResult& result, const std::vector<SurveyedSource>& sources);
// A level without rows says why.
void note_empty_level(const std::vector<ReportRow>& rows, std::string_view by, Diagnostics& diagnostics);

// What the same files teach about classes of kernels (kernel_learning.h), in the time of a report.
// `unnamed_gpu`: the model of GPUs that do not tell theirs.
Result<std::vector<KernelPower>> learn_powers(std::span<const std::string> paths, const SecondsWithin& within = {},
                                              const std::string& unnamed_gpu = {});

}  // namespace joulemap::attribution
