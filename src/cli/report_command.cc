// SPDX-License-Identifier: Apache-2.0
#include "cli/report_command.h"

#include <fmt/format.h>

#include <map>
#include <memory>

#include "attribution/report_builder.h"
#include "attribution/run_view_builder.h"
#include "base/small_file.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "page/page_html.h"
#include "recording/library_file.h"
#include "report/report_json.h"
#include "report/report_text.h"

namespace joulemap::cli {
namespace {

struct ReportFlags {
  std::vector<std::string> files;
  std::string by = "domain";
  std::string mode = "regress";
  std::string time;  // seconds: "30,60", or "30" for the rest from there on
  std::string library;
  std::optional<std::size_t> depth;
  std::optional<std::size_t> top;
  std::optional<report::SortBy> sort;
  std::string filter;
  bool json = false;
  std::string html;
  std::string output;
};

// Nothing of "none"; a name that no file has is a mistake.
Result<recording::LoadedLibrary> named_library(const std::string& name) {
  if (name.empty() || name == "none") return recording::LoadedLibrary{};
  if (!file_exists(name)) {
    return Error{ErrorCode::not_found, fmt::format("{}: no such kernel library", name),
                 "joulemap record keeps one in its data folder; --library none uses none"};
  }
  return recording::load_library(name);
}

// Not a list of CLI11's: that would take the name of a file that follows for TO.
Status read_window(std::string_view text, attribution::SecondsWithin& within) {
  if (text.empty()) return Done{};
  const Error wrong{ErrorCode::usage, fmt::format("--time {} is no stretch of time", joulemap::quoted(text)),
                    "--time 30,60"};
  const std::size_t comma = text.find(',');
  const std::optional<double> from_s = parse_double(text.substr(0, comma));
  if (!from_s || *from_s < 0) return wrong;
  within.from_s = *from_s;
  if (comma == std::string_view::npos) return Done{};
  within.to_s = parse_double(text.substr(comma + 1));
  return within.to_s && *within.to_s > within.from_s ? Status(Done{}) : Status(wrong);
}

// The page has all levels: what rows would be by is chosen there.
int write_page(const ReportFlags& flags, const attribution::ViewQuery& query, const Diagnostics& diagnostics) {
  Result<OutputFile> file = OutputFile::open(flags.html);
  if (!file) return fail(file.error());
  Result<RunView> view = attribution::build_run_view(flags.files, query);
  if (!view) return fail(view.error());
  view->run.diagnostics.add_all(diagnostics);
  const Status written = file->replace_content(page::page_html(*view));
  return written ? kDone : fail(written.error());
}

std::string text_of(const ReportResult& result, const ReportFlags& flags) {
  report::TextStyle style = style_of_stdout();
  if (!flags.output.empty()) style.colour = false;
  return report::report_text(result, {{flags.sort, flags.filter}, flags.depth, flags.top}, style);
}

int run_report(const ReportFlags& flags, const CommandLine& line) {
  if (line.has_dashes) return fail({ErrorCode::usage, "report runs no command", "leave out what stands after --"});
  std::optional<OutputFile> file;
  if (!flags.output.empty()) {
    Result<OutputFile> opened = OutputFile::open(flags.output);
    if (!opened) return fail(opened.error());
    file = std::move(*opened);
  }
  attribution::ReportQuery query{attribution::level_named(flags.by).value_or(attribution::Level::domain),
                                 attribution::mode_named(flags.mode).value_or(attribution::Mode::regress),
                                 {}};
  query.grouping = {!flags.json, flags.filter};
  if (const Status told = read_window(flags.time, query.within); !told) return fail(told.error());
  Result<recording::LoadedLibrary> library = named_library(flags.library);
  if (!library) return fail(library.error());
  if (!flags.library.empty()) query.library = std::move(library->powers);
  if (!flags.html.empty())
    return write_page(flags, {query.mode, query.within, query.library, true}, library->diagnostics);
  Result<ReportResult> result = attribution::build_report(flags.files, query);
  if (!result) return fail(result.error());
  result->diagnostics.add_all(library->diagnostics);
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
  verb.add_option(
          "--mode", flags->mode,
          "how energy is shared out: regress (by what kernels and layers draw, the default), integral (by time), "
          "hold (by the power shown last)")
      ->type_name("MODE")
      ->check(CLI::IsMember({"regress", "integral", "hold"}));
  verb.add_option("--time", flags->time, "only what was between FROM and TO, in seconds since the command began")
      ->type_name("FROM,TO");
  verb.add_option("--library", flags->library,
                  "what is known of kernels from elsewhere: a kernel library, or none; else what the recording holds")
      ->type_name("FILE|none");
  add_view_flags(verb, *flags);
  verb.add_flag("--json", flags->json, "one line of JSON (schema joulemap.report/1)");
  verb.add_option("--html", flags->html, "write a page to FILE: one file that loads nothing, with all levels and plots")
      ->type_name("FILE")
      ->excludes("--json");
  verb.add_option("-o,--output", flags->output, "write to FILE")->type_name("FILE");
  verb.callback([flags, &line] { line.exit_code = run_report(*flags, line); });
}

}  // namespace joulemap::cli
