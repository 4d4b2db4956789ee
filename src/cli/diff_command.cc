// SPDX-License-Identifier: Apache-2.0
#include "cli/diff_command.h"

#include <fmt/format.h>

#include <memory>

#include "attribution/report_builder.h"
#include "attribution/run_comparison.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/value_checks.h"
#include "page/page_html.h"
#include "report/diff_json.h"
#include "report/diff_text.h"

namespace joulemap::cli {
namespace {

struct DiffFlags {
  std::string a;
  std::string b;
  std::string by = "layer";
  std::string per;
  std::string fail_over;
  std::size_t top = 10;
  bool json = false;
  std::string html;
  std::string output;
};

// "5%", "5 %" or "0.05".
Result<std::optional<double>> share_of(const std::string& text) {
  if (text.empty()) return std::optional<double>();
  std::string_view digits = trim(text);
  const bool is_percent = digits.ends_with('%');
  if (is_percent) digits = trim(digits.substr(0, digits.size() - 1));
  const std::optional<double> value = parse_double(digits);
  if (!value || *value < 0) {
    return Error{ErrorCode::usage, fmt::format("--fail-over {} is no share", joulemap::quoted(text)), "--fail-over 5%"};
  }
  return std::optional(is_percent ? *value / 100 : *value);
}

Result<attribution::RunReports> reports_of(const std::string& file, attribution::Level level) {
  const std::vector<std::string> files = {file};
  attribution::ReportQuery query;
  query.level = level;
  Result<ReportResult> rows = attribution::build_report(files, query);
  if (!rows) return std::move(rows).error();
  query.level = attribution::Level::step;
  Result<ReportResult> steps = attribution::build_report(files, query);
  if (!steps) return std::move(steps).error();
  return attribution::RunReports{std::move(*rows), std::move(*steps)};
}

Result<RunDifference> difference_of(const DiffFlags& flags) {
  const Result<std::optional<double>> fail_over = share_of(flags.fail_over);
  if (!fail_over) return fail_over.error();
  const attribution::Level level = attribution::level_named(flags.by).value_or(attribution::Level::layer);
  const Result<attribution::RunReports> a = reports_of(flags.a, level);
  if (!a) return a.error();
  const Result<attribution::RunReports> b = reports_of(flags.b, level);
  if (!b) return b.error();
  return attribution::compare_runs(*a, *b, {flags.per, *fail_over});
}

int run_diff(const DiffFlags& flags) {
  const Result<RunDifference> difference = difference_of(flags);
  if (!difference) return fail(difference.error());
  if (!flags.html.empty()) {
    const Status page = write_to_file_or_stdout(flags.html, page::diff_html(*difference));
    if (!page) return fail(page.error());
    return difference->failed ? kFailed : kDone;
  }
  report::TextStyle style = style_of_stdout();
  if (!flags.output.empty()) style.colour = false;
  const std::string text =
      flags.json ? report::diff_json(*difference) + "\n" : report::diff_text(*difference, flags.top, style);
  const Status written = write_to_file_or_stdout(flags.output, text);
  if (!written) return fail(written.error());
  return difference->failed ? kFailed : kDone;
}

}  // namespace

void add_diff_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<DiffFlags>();
  verb.add_option("A", flags->a, "the recording to compare with")->required();
  verb.add_option("B", flags->b, "the one that is compared")->required();
  verb.add_option("--by", flags->by,
                  "entries: domain, phase, layer (the default), op, tensor, function, region, kernel")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"domain", "phase", "layer", "op", "tensor", "function", "region", "kernel"}));
  verb.add_option("--per", flags->per, "energies per sample, step, epoch or run; else the first that both tell")
      ->type_name("UNIT")
      ->check(CLI::IsMember({"sample", "step", "epoch", "run"}));
  verb.add_option("--fail-over", flags->fail_over,
                  "exit with 1 when the total grew by more than this share (5%), and beyond the noise")
      ->type_name("SHARE");
  verb.add_option("--top", flags->top, "lines under each heading (10); 0 shows all")
      ->type_name("N")
      ->check(whole_number());
  verb.add_flag("--json", flags->json, "one line of JSON (schema joulemap.diff/1)");
  verb.add_option("--html", flags->html, "write a page to FILE: one file that loads nothing")
      ->type_name("FILE")
      ->excludes("--json");
  verb.add_option("-o,--output", flags->output, "write to FILE")->type_name("FILE");
  verb.callback([flags, &line] { line.exit_code = run_diff(*flags); });
}

}  // namespace joulemap::cli
