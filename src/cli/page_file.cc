// SPDX-License-Identifier: Apache-2.0
#include "cli/page_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "attribution/analysis/run_view_builder.h"
#include "cli/advise_command.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "page/page_html.h"

namespace joulemap::cli {

Result<std::vector<std::string>> recordings_or_default(std::vector<std::string> recording_files,
                                                       std::string_view verb) {
  if (!recording_files.empty()) return recording_files;
  const std::string default_path(kDefaultRecording);
  std::error_code error;
  if (std::filesystem::exists(default_path, error) || std::filesystem::exists(default_path + ".d", error))
    return std::vector{default_path};
  return Error{ErrorCode::usage, fmt::format("{} needs a recording: there is no {} in this folder", verb, default_path),
               fmt::format("make one: joulemap record -- python train.py, or name one: joulemap {} FILE", verb)};
}

namespace {

// The rows by operation of a view.
ReportResult operation_report(const RunView& view) {
  ReportResult report = view.run;
  report.by = "op";
  report.rows.clear();
  const LevelView* const level = view.level("op");
  if (level == nullptr) return report;
  report.rows = level->rows;
  report.attributed_j = level->attributed_j;
  report.idle_j = level->idle_j;
  report.unattributed_j = level->unattributed_j;
  return report;
}

}  // namespace

Result<Diagnostics> write_page(const std::vector<std::string>& recordings, const std::string& path,
                               const AttributionFlags& flags, const CommandLine& line) {
  std::vector<std::string> inputs = recordings;
  if (!flags.kernel_library_file.empty()) inputs.push_back(flags.kernel_library_file);
  Result<CommandOutput> output = CommandOutput::open(path, inputs);
  if (!output) return std::move(output).error();
  Result<AttributionOptions> options = parse_attribution_options(flags);
  if (!options) return std::move(options).error();
  attribution::ReportQuery advice_query;
  advice_query.mode = options->attribution_mode;
  advice_query.time_range = options->time_range;
  advice_query.library = options->kernel_powers;
  advice_query.excluded_domains = options->excluded_domains;
  attribution::ViewQuery view_query{options->attribution_mode, options->time_range, std::move(options->kernel_powers),
                                    true};
  view_query.excluded_domains = std::move(options->excluded_domains);
  ProgressLine progress("analyzing " + recordings.front(), line);
  view_query.on_progress = progress.make_progress_callback();
  Result<RunView> view = attribution::build_run_view(recordings, view_query);
  if (!view) return std::move(view).error();
  view->run.diagnostics.add_all(options->diagnostics);
  // A run that allows no advice has a page without it.
  if (Result<Advice> advice = advise_on_recordings(recordings, advice_query, operation_report(*view)))
    view->advice = std::move(*advice);
  if (Status write_status = output->write(page::page_html(*view)); !write_status)
    return std::move(write_status).error();
  return std::move(view->run.diagnostics);
}

}  // namespace joulemap::cli
