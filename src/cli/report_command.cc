// SPDX-License-Identifier: Apache-2.0
#include "cli/report_command.h"

#include <fmt/format.h>

#include <map>
#include <memory>

#include "attribution/report_builder.h"
#include "attribution/run_view_builder.h"
#include "cli/output.h"
#include "cli/picture_file.h"
#include "cli/question.h"
#include "cli/terminal.h"
#include "page/page_html.h"
#include "report/plots.h"
#include "report/report_json.h"
#include "report/report_text.h"

namespace joulemap::cli {
namespace {

struct ReportFlags {
  std::vector<std::string> files;
  std::string by;  // domains, if nothing is said
  QuestionFlags question;
  std::optional<std::size_t> depth;
  std::optional<std::size_t> top;
  std::optional<report::SortBy> sort;
  std::string filter;
  bool json = false;
  std::string plot;
  std::string html;
  std::string output;
};

std::string text_of(const ReportResult& result, const ReportFlags& flags) {
  report::TextStyle style = style_of_stdout();
  if (!flags.output.empty()) style.colour = false;
  return report::report_text(result, {{flags.sort, flags.filter}, flags.depth, flags.top}, style);
}

int run_plot(const ReportFlags& flags) {
  const report::PlotQuery query{report::plot_named(flags.plot).value_or(report::Plot::timeline), flags.by, flags.filter,
                                flags.top};
  if (const Status possible = can_write_picture(flags.output); !possible) return fail(possible.error());
  Result<Question> question = question_of(flags.question);
  if (!question) return fail(question.error());
  attribution::ViewQuery wanted{question->mode, question->within, std::move(question->library), true, {}};
  const std::optional<attribution::Level> level = attribution::level_named(flags.by);
  wanted.levels = level ? std::vector{*level} : std::vector{attribution::Level::layer, attribution::Level::kernel};
  Result<RunView> view = attribution::build_run_view(flags.files, wanted);
  if (!view) return fail(view.error());
  view->run.diagnostics.add_all(question->diagnostics);
  const Result<std::string> svg = report::plot_svg(*view, query);
  if (!svg) return fail(svg.error());
  const Status written = write_picture(flags.output, *svg);
  return written ? kDone : fail(written.error());
}

// The page has all levels: what rows would be by is chosen there.
int write_page(const ReportFlags& flags) {
  Result<OutputFile> file = OutputFile::open(flags.html);
  if (!file) return fail(file.error());
  Result<Question> question = question_of(flags.question);
  if (!question) return fail(question.error());
  Result<RunView> view =
      attribution::build_run_view(flags.files, {question->mode, question->within, std::move(question->library), true});
  if (!view) return fail(view.error());
  view->run.diagnostics.add_all(question->diagnostics);
  const Status written = file->replace_content(page::page_html(*view));
  return written ? kDone : fail(written.error());
}

// They say different things: one at a time.
Status is_one_output(const ReportFlags& flags) {
  const int wanted = (flags.json ? 1 : 0) + (flags.plot.empty() ? 0 : 1) + (flags.html.empty() ? 0 : 1);
  if (wanted <= 1) return Done{};
  return Error{ErrorCode::usage, "--json, --plot and --html each give something else", "give one of them"};
}

int run_report(const ReportFlags& flags, const CommandLine& line) {
  if (line.has_dashes) return fail({ErrorCode::usage, "report runs no command", "leave out what stands after --"});
  if (const Status is_clear = is_one_output(flags); !is_clear) return fail(is_clear.error());
  if (!flags.plot.empty()) return run_plot(flags);
  if (!flags.html.empty()) return write_page(flags);
  std::optional<OutputFile> file;
  if (!flags.output.empty()) {
    Result<OutputFile> opened = OutputFile::open(flags.output);
    if (!opened) return fail(opened.error());
    file = std::move(*opened);
  }
  Result<Question> question = question_of(flags.question);
  if (!question) return fail(question.error());
  attribution::ReportQuery query{attribution::level_named(flags.by).value_or(attribution::Level::domain),
                                 question->mode,
                                 question->within,
                                 std::move(question->library),
                                 {!flags.json, flags.filter}};
  Result<ReportResult> result = attribution::build_report(flags.files, query);
  if (!result) return fail(result.error());
  result->diagnostics.add_all(question->diagnostics);
  const std::string text = flags.json ? report::report_json(*result) + "\n" : text_of(*result, flags);
  const Status written = file ? file->replace_content(text) : write_to(Stream::out, text);
  return written ? kDone : fail(written.error());
}

void add_view_flags(CLI::App& verb, ReportFlags& flags) {
  const std::map<std::string, report::SortBy> orders = {
      {"energy", report::SortBy::energy}, {"time", report::SortBy::time}, {"power", report::SortBy::power},
      {"count", report::SortBy::count},   {"name", report::SortBy::name}, {"order", report::SortBy::order}};
  verb.add_option("--depth", flags.depth, "levels of the tree that are unfolded, devices being the first")
      ->type_name("N");
  verb.add_option("--top", flags.top, "at most N lines, the largest branches unfolded first (30); 0 shows all")
      ->type_name("N");
  verb.add_option("--sort", flags.sort, "energy (the default), time, power, count, name or order (as steps ran)")
      ->type_name("KEY")
      ->transform(CLI::CheckedTransformer(orders).description(""));
  verb.add_option("--filter", flags.filter, "only rows whose device and path hold TEXT")->type_name("TEXT");
}

}  // namespace

void add_report_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<ReportFlags>();
  verb.add_option("FILE", flags->files, "recordings; several parts of one run are put together")->required();
  verb.add_option("--by", flags->by, "rows: domain, phase, layer, op, tensor, function, region, kernel, step, epoch")
      ->type_name("LEVEL")
      ->check(
          CLI::IsMember({"domain", "phase", "layer", "op", "tensor", "function", "region", "kernel", "step", "epoch"}));
  add_question_flags(verb, flags->question);
  add_view_flags(verb, *flags);
  verb.add_flag("--json", flags->json, "one line of JSON (schema joulemap.report/1)");
  verb.add_option(
          "--plot", flags->plot,
          "a picture instead: timeline, violin, box, bars, loss, flame, heatmap; -o says where: .svg, .png, .pdf")
      ->type_name("PLOT")
      ->check(CLI::IsMember({"timeline", "violin", "box", "bars", "loss", "flame", "heatmap"}));
  verb.add_option("--html", flags->html, "write a page to FILE: one file that loads nothing, with all levels and plots")
      ->type_name("FILE");
  verb.add_option("-o,--output", flags->output, "write to FILE")->type_name("FILE");
  verb.callback([flags, &line] { line.exit_code = run_report(*flags, line); });
}

}  // namespace joulemap::cli
