// SPDX-License-Identifier: Apache-2.0
#include "cli/diff_command.h"

#include <fmt/format.h>

#include <memory>

#include "attribution/analysis/compared_recordings.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/value_checks.h"
#include "page/page_html.h"
#include "report/json/diff_json.h"
#include "report/text/diff_text.h"

namespace joulemap::cli {
namespace {

struct DiffFlags {
  std::vector<std::string> recordings;
  std::vector<std::string> baseline;
  std::string by = "layer";
  std::string per;
  std::string failure_threshold;
  std::string run_sd;
  bool whole_run = false;
  std::size_t shown_entry_count = 10;
  bool json = false;
  std::string html_file;
  std::string output;
  bool strict = false;
};

// Parses a fraction: "5%", "5 %" or "0.05". None for an empty text.
Result<std::optional<double>> parse_fraction_option(std::string_view option, const std::string& text) {
  if (text.empty()) return std::optional<double>();
  std::string_view digits = trim(text);
  const bool is_percent = digits.ends_with('%');
  if (is_percent) digits = trim(digits.substr(0, digits.size() - 1));
  const std::optional<double> value = parse_double(digits);
  if (!value || *value < 0) {
    return Error{ErrorCode::usage, fmt::format("{} {} is not a fraction or percentage", option, joulemap::quoted(text)),
                 fmt::format("{} 5%", option)};
  }
  return std::optional(is_percent ? *value / 100 : *value);
}

struct ComparedRecordingPaths {
  std::vector<std::string> a;
  std::vector<std::string> b;
};

// The recordings of each side. `diff A B`: A and B. With --baseline: side a is the baseline, side b the positional
// recordings.
Result<ComparedRecordingPaths> select_compared_recordings(const DiffFlags& flags) {
  if (!flags.baseline.empty() && !flags.recordings.empty())
    return ComparedRecordingPaths{flags.baseline, flags.recordings};
  if (flags.baseline.empty() && flags.recordings.size() == 2)
    return ComparedRecordingPaths{{flags.recordings[0]}, {flags.recordings[1]}};
  if (flags.baseline.empty()) {
    return Error{ErrorCode::usage, fmt::format("diff compares two recordings, not {}", flags.recordings.size()),
                 "joulemap diff A B, or with repeated runs: joulemap diff B1 B2 B3 --baseline A1 A2 A3"};
  }
  return Error{ErrorCode::usage, "no recordings to compare with the baseline",
               "put --baseline last: joulemap diff B1 B2 B3 --baseline A1 A2 A3"};
}

Result<RunDifference> compute_difference(const DiffFlags& flags) {
  const Result<ComparedRecordingPaths> sides = select_compared_recordings(flags);
  if (!sides) return sides.error();
  const Result<std::optional<double>> failure_threshold = parse_fraction_option("--fail-over", flags.failure_threshold);
  if (!failure_threshold) return failure_threshold.error();
  const Result<std::optional<double>> run_sd = parse_fraction_option("--run-sd", flags.run_sd);
  if (!run_sd) return run_sd.error();
  const attribution::RowLevel level = attribution::parse_row_level(flags.by).value_or(attribution::RowLevel::layer);
  return attribution::compare_recordings(sides->a, sides->b, level,
                                         {flags.per, *failure_threshold, *run_sd, flags.whole_run});
}

int run_diff(const DiffFlags& flags, const CommandLine& line) {
  std::vector<std::string> inputs = flags.recordings;
  inputs.insert(inputs.end(), flags.baseline.begin(), flags.baseline.end());
  Result<CommandOutput> output = CommandOutput::open(flags.html_file.empty() ? flags.output : flags.html_file, inputs);
  if (!output) return print_error(output.error());
  Result<RunDifference> difference = compute_difference(flags);
  if (!difference) return print_error(difference.error());
  const Diagnostics notes = difference->diagnostics;
  if (line.quiet && !flags.json && flags.html_file.empty()) difference->diagnostics = {};
  if (!flags.html_file.empty()) {
    const Status page = output->write(page::diff_html(*difference));
    if (!page) return print_error(page.error());
    return strict_exit_code(difference->failed ? kExitFailure : kExitSuccess, flags.strict, difference->diagnostics);
  }
  report::TextStyle style = style_of_stdout(line.colour);
  if (!flags.output.empty()) style.colour = false;
  const std::string text = flags.json ? report::diff_json(*difference) + "\n"
                                      : report::diff_text(*difference, flags.shown_entry_count, style);
  const Status write_status = output->write(text);
  if (!write_status) return print_error(write_status.error());
  return strict_exit_code(difference->failed ? kExitFailure : kExitSuccess, flags.strict, notes);
}

}  // namespace

void add_diff_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<DiffFlags>();
  // Not marked as required: if --baseline comes first, CLI11 would assign its last file to RECORDING.
  verb.add_option("RECORDING", flags->recordings,
                  "the baseline and the recording to compare; with --baseline, only the recordings to compare");
  verb.add_option("--baseline", flags->baseline,
                  "baseline recordings, if each side has several; must be the last option")
      ->type_name("FILE");
  verb.add_option("--by", flags->by,
                  "level of entries: layer (the default), module (layers with all passes together), domain, phase, op, "
                  "tensor, function, region, kernel; operator: equal operations and shapes whatever their names, with "
                  "the cause of each difference")
      ->type_name("LEVEL")
      ->check(word_choice_validator(
          {"domain", "phase", "layer", "module", "op", "tensor", "function", "region", "kernel", "operator"}));
  verb.add_option("--per", flags->per,
                  "energy per sample, step, epoch or run; default: the first that all recordings have")
      ->type_name("UNIT")
      ->check(word_choice_validator({"sample", "step", "epoch", "run"}));
  verb.add_option("--fail-over", flags->failure_threshold,
                  "exit with 1 if the total grew by more than SHARE, e.g. 5%, and by more than the noise")
      ->type_name("SHARE");
  verb.add_option("--top", flags->shown_entry_count, "at most N lines under each heading; default: 10; 0 shows all")
      ->type_name("N")
      ->check(whole_number_validator());
  verb.add_flag("--whole-run", flags->whole_run, "compare whole runs, including start-up, warm-up and shutdown");
  verb.add_option("--run-sd", flags->run_sd,
                  "relative standard deviation between runs of one program; default: 2%; repeated recordings refine it")
      ->type_name("SHARE");
  verb.add_flag("--json", flags->json, "one line of JSON (schema joulemap.diff/1)");
  verb.add_option("--html", flags->html_file, "write a self-contained HTML page to FILE")
      ->type_name("FILE")
      ->excludes("--json");
  verb.add_option("-o,--output", flags->output, "write to FILE")->type_name("FILE")->excludes("--html");
  add_strict_flag(verb, flags->strict);
  verb.callback([flags, &line] { line.exit_code = run_diff(*flags, line); });
}

}  // namespace joulemap::cli
