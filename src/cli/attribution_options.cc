// SPDX-License-Identifier: Apache-2.0
#include "cli/attribution_options.h"
#include "cli/value_checks.h"

#include <fmt/format.h>

#include "base/small_file.h"
#include "base/text.h"
#include "recording/kernel_library_file.h"

namespace joulemap::cli {
namespace {

// Reads the library file `name`; "none" and an empty name give an empty library. Fails if there is no such file.
Result<recording::LoadedKernelLibrary> read_kernel_library_file(const std::string& name) {
  if (name.empty() || name == "none") return recording::LoadedKernelLibrary{};
  if (!file_exists(name)) {
    return Error{ErrorCode::not_found, fmt::format("{}: no such kernel library", name),
                 "joulemap record writes one to its data folder; use --library none to run without one"};
  }
  return recording::load_kernel_library(name);
}

// Parses --time "30,60" or "30". As a CLI11 list option, "--time 30 FILE" would take FILE for the end.
Status parse_time_window(std::string_view text, attribution::CommandTimeRange& time_range) {
  if (text.empty()) return Done{};
  const Error time_range_error{ErrorCode::usage, fmt::format("--time {} is not a time range", joulemap::quoted(text)),
                               "--time 30,60"};
  const std::size_t comma = text.find(',');
  const std::optional<double> from_s = parse_double(text.substr(0, comma));
  if (!from_s || *from_s < 0) return time_range_error;
  time_range.from_s = *from_s;
  if (comma == std::string_view::npos) return Done{};
  time_range.to_s = parse_double(text.substr(comma + 1));
  return time_range.to_s && *time_range.to_s > time_range.from_s ? Status(Done{}) : Status(time_range_error);
}

std::vector<DomainClass> parse_excluded_domain_classes(const std::vector<std::string>& names) {
  std::vector<DomainClass> classes;
  for (const std::string& name : names) {
    classes.push_back(name == "gpu" ? DomainClass::gpu : name == "ram" ? DomainClass::memory : DomainClass::cpu);
  }
  return classes;
}

}  // namespace

void add_attribution_flags(CLI::App& verb, AttributionFlags& flags) {
  verb.add_option(
          "--mode", flags.attribution_mode,
          "how energy is attributed: regress (by the power of kernels and layers, the default), integral (by time), "
          "hold (by the power of the previous counter interval)")
      ->type_name("MODE")
      ->check(word_choice_validator({"regress", "integral", "hold"}));
  verb.add_option("--time", flags.time_window, "analyze only FROM to TO, in seconds since the start of the command")
      ->type_name("FROM,TO");
  verb.add_option("--exclude", flags.excluded_domains, "exclude parts of the machine: cpu, ram, gpu")
      ->type_name("LIST")
      ->delimiter(',')
      ->allow_extra_args(false)  // a file name may follow
      ->check(word_choice_validator({"cpu", "ram", "gpu"}));
  verb.add_option("--library", flags.kernel_library_file,
                  "kernel library that provides the priors, or none; default: the priors in the recording")
      ->type_name("FILE|none");
}

Result<AttributionOptions> parse_attribution_options(const AttributionFlags& flags) {
  AttributionOptions attribution_options;
  attribution_options.attribution_mode =
      attribution::parse_attribution_mode(flags.attribution_mode).value_or(attribution::AttributionMode::regress);
  if (const Status parse_status = parse_time_window(flags.time_window, attribution_options.time_range); !parse_status)
    return parse_status.error();
  Result<recording::LoadedKernelLibrary> library = read_kernel_library_file(flags.kernel_library_file);
  if (!library) return std::move(library).error();
  if (!flags.kernel_library_file.empty()) attribution_options.kernel_powers = std::move(library->powers);
  attribution_options.diagnostics = std::move(library->diagnostics);
  attribution_options.excluded_domains = parse_excluded_domain_classes(flags.excluded_domains);
  return attribution_options;
}

attribution::ReportQuery make_report_query(AttributionOptions& options) {
  attribution::ReportQuery query;
  query.mode = options.attribution_mode;
  query.time_range = options.time_range;
  query.library = std::move(options.kernel_powers);
  query.excluded_domains = std::move(options.excluded_domains);
  return query;
}

}  // namespace joulemap::cli
