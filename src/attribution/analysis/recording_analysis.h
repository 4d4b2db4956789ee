// SPDX-License-Identifier: Apache-2.0
//
// Analyses recordings for reports, pages and plots, at any number of levels: finds powers once and attributes energy at
// all levels in one pass. Reads the recording two or three times, instead of keeping all of it in memory.
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
#include "base/progress.h"
#include "base/result.h"
#include "model/report_result.h"

namespace joulemap::attribution {

// Number of values of power over time: more than a terminal has columns.
inline constexpr std::size_t kReportPowerSliceCount = 240;

struct AnalysisQuery {
  std::vector<RowLevel> levels;
  AttributionMode mode = AttributionMode::regress;
  CommandTimeRange time_range = {};
  std::optional<std::vector<KernelPower>> library = {};    // replaces the priors stored in the recording
  std::size_t power_slice_count = kReportPowerSliceCount;  // number of values of power over time
  std::optional<ViewLimits> views = {};                    // also build timelines
  BranchSumOptions grouping = {};
  std::vector<DomainClass> excluded_domains = {};  // domains that are not counted
  ProgressCallback on_progress = {};
  std::optional<double> program_end_s = {};  // ReportQuery::program_end_s
  bool includes_step_times = false;          // also return times of steps and epochs, without the rest of the views
};

struct RecordingAnalysis {
  ReportResult summary;  // without rows
  std::vector<SurveyedSource> sources;
  std::map<RowLevel, LedgerResult> ledgers;  // except RowLevel::domain
  // Filled if the query asks for views; for includes_step_times only `machine_views`.
  std::vector<MachineView> machine_views = {};
  RunEvents events = {};
  std::map<std::string, DomainClass> domain_classes = {};  // by domain
};

// `paths`: the files of one recording, or of its parts. Fails if none is readable, if they do not belong together, or
// if they end before the requested time begins.
Result<RecordingAnalysis> analyse_recording(std::span<const std::string> paths, const AnalysisQuery& query);

// Adds a row for each counted domain: the measured ones, or the estimated ones if nothing was measured.
void add_domain_rows(ReportResult& result);
// Adds diagnostics about expected but missing content of a recording.
void add_missing_data_diagnostics(ReportResult& result, const std::vector<SurveyedSource>& sources);
// Adds a diagnostic with the reason if a level has no rows.
void add_empty_level_diagnostic(const std::vector<ReportRow>& rows, std::string_view level_name,
                                Diagnostics& diagnostics);

// Finds the powers of kernel classes in the files of one recording (kernel_learning.h). Takes as long as a report.
// `default_gpu_model`: the model of GPUs whose recording does not contain it.
Result<std::vector<KernelPower>> learn_kernel_powers(std::span<const std::string> paths,
                                                     const CommandTimeRange& time_range = {},
                                                     const std::string& default_gpu_model = {});

}  // namespace joulemap::attribution
