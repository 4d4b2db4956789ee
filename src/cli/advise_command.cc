// SPDX-License-Identifier: Apache-2.0
#include "cli/advise_command.h"

#include <array>
#include <memory>

#include "advise/advise.h"
#include "attribution/analysis/steady_reports.h"
#include "cli/attribution_options.h"
#include "cli/output.h"
#include "cli/page_file.h"
#include "cli/terminal.h"
#include "report/json/advice_json.h"
#include "report/text/advice_text.h"

namespace joulemap::cli {
namespace {

struct AdviseFlags {
  std::vector<std::string> recording_files;
  AttributionFlags attribution_options;
  bool as_json = false;
  std::string output_file;
  bool is_strict = false;
};

Result<Advice> compute_advice(const AdviseFlags& flags) {
  Result<AttributionOptions> options = parse_attribution_options(flags.attribution_options);
  if (!options) return std::move(options).error();
  attribution::ReportQuery query;
  query.mode = options->attribution_mode;
  query.time_range = options->time_range;
  query.library = std::move(options->kernel_powers);
  query.excluded_domains = std::move(options->excluded_domains);
  query.level = attribution::RowLevel::op;
  const Result<ReportResult> operations = attribution::build_report(flags.recording_files, query);
  if (!operations) return operations.error();
  Result<Advice> advice = advise_on_recordings(flags.recording_files, query, *operations);
  if (advice) advice->diagnostics.add_all(options->diagnostics);
  return advice;
}

int run_advise(AdviseFlags flags, const CommandLine& line) {
  Result<std::vector<std::string>> files = recordings_or_default(std::move(flags.recording_files), "advise");
  if (!files) return print_error(files.error());
  flags.recording_files = std::move(*files);
  Result<CommandOutput> output = CommandOutput::open(flags.output_file, flags.recording_files);
  if (!output) return print_error(output.error());
  Result<Advice> advice = compute_advice(flags);
  if (!advice) return print_error(advice.error());
  const Diagnostics notes = advice->diagnostics;
  if (line.quiet && !flags.as_json) advice->diagnostics = {};
  report::TextStyle style = style_of_stdout(line.colour);
  if (!flags.output_file.empty()) style.colour = false;
  const Status write_status =
      output->write(flags.as_json ? report::advice_json(*advice) + "\n" : report::advice_text(*advice, style));
  return write_status ? strict_exit_code(kExitSuccess, flags.is_strict, notes) : print_error(write_status.error());
}

}  // namespace

Result<Advice> advise_on_recordings(std::span<const std::string> files, const attribution::ReportQuery& query,
                                    const ReportResult& operations) {
  const std::array levels{attribution::RowLevel::layer, attribution::RowLevel::kernel};
  const Result<attribution::SteadyReports> steady_reports = attribution::build_steady_reports(files, query, levels);
  if (!steady_reports) return steady_reports.error();
  const bool is_steady = steady_reports->steady_state.has_value();
  const double steps = is_steady                         ? steady_reports->steps_in_rows
                       : query.time_range.is_whole_run() ? static_cast<double>(steady_reports->reports[0].steps)
                                                         : 0;
  return advise::advise({steady_reports->reports[0], steady_reports->reports[1], operations, {is_steady, steps}});
}

void add_advise_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<AdviseFlags>();
  verb.add_option("FILE", flags->recording_files,
                  "recordings; default: run.joule; several parts of one run are merged");
  add_attribution_flags(verb, flags->attribution_options);
  verb.add_flag("--json", flags->as_json, "one line of JSON (schema joulemap.advice/1)");
  verb.add_option("-o,--output", flags->output_file, "write to FILE")->type_name("FILE");
  add_strict_flag(verb, flags->is_strict);
  verb.callback([flags, &line] { line.exit_code = run_advise(*flags, line); });
}

}  // namespace joulemap::cli
