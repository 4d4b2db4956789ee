// SPDX-License-Identifier: Apache-2.0
#include "cli/report_command.h"

#include <fmt/format.h>

#include <cstdlib>
#include <memory>

#include "attribution/report_builder.h"
#include "base/small_file.h"
#include "base/text.h"
#include "cli/output.h"
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
  std::vector<std::string> without;
  bool json = false;
  std::string output;
};

// As the C library decides which of the variables counts.
report::Characters characters_of_the_terminal() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): there is one thread
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale(value);
    const bool utf8 = locale.find("UTF-8") != locale.npos || locale.find("utf8") != locale.npos;
    return utf8 ? report::Characters::unicode : report::Characters::ascii;
  }
  return report::Characters::ascii;
}

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

std::vector<DomainClass> left_out(const std::vector<std::string>& names) {
  std::vector<DomainClass> classes;
  for (const std::string& name : names) {
    classes.push_back(name == "gpu" ? DomainClass::gpu : name == "ram" ? DomainClass::memory : DomainClass::cpu);
  }
  return classes;
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
  if (const Status told = read_window(flags.time, query.within); !told) return fail(told.error());
  query.without = left_out(flags.without);
  Result<recording::LoadedLibrary> library = named_library(flags.library);
  if (!library) return fail(library.error());
  if (!flags.library.empty()) query.library = std::move(library->powers);
  Result<ReportResult> result = attribution::build_report(flags.files, query);
  if (!result) return fail(result.error());
  result->diagnostics.add_all(library->diagnostics);
  const std::string text =
      flags.json ? report::report_json(*result) + "\n" : report::report_text(*result, characters_of_the_terminal());
  const Status written = file ? file->replace_content(text) : write_to(Stream::out, text);
  return written ? kDone : fail(written.error());
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
  verb.add_option("--without", flags->without, "leave out parts of the machine: cpu, ram, gpu")
      ->type_name("LIST")
      ->delimiter(',')
      ->allow_extra_args(false)  // the name of a file may follow
      ->check(CLI::IsMember({"cpu", "ram", "gpu"}));
  verb.add_option("--library", flags->library,
                  "what is known of kernels from elsewhere: a kernel library, or none; else what the recording holds")
      ->type_name("FILE|none");
  verb.add_flag("--json", flags->json, "one line of JSON (schema joulemap.report/1)");
  verb.add_option("-o,--output", flags->output, "write to FILE")->type_name("FILE");
  verb.callback([flags, &line] { line.exit_code = run_report(*flags, line); });
}

}  // namespace joulemap::cli
