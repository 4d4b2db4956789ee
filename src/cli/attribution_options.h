// SPDX-License-Identifier: Apache-2.0
//
// Options that `report` and `export` share: which part of a recording to analyse, and how to attribute its energy.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "attribution/analysis/recording_analysis.h"
#include "attribution/analysis/report_builder.h"
#include "base/result.h"
#include "model/diagnostics.h"
#include "model/kernel_power.h"

namespace joulemap::cli {

struct AttributionFlags {
  std::string attribution_mode = "regress";
  std::string time_window;  // seconds since the start of the command: "30,60", or "30" to the end
  std::string kernel_library_file;
  std::vector<std::string> excluded_domains;
};

// Declares --mode, --time, --library and --exclude on `verb`. `flags` must outlive the parser.
void add_attribution_flags(CLI::App& verb, AttributionFlags& flags);

struct AttributionOptions {
  attribution::AttributionMode attribution_mode = attribution::AttributionMode::regress;
  attribution::CommandTimeRange time_range;
  std::optional<std::vector<KernelPower>> kernel_powers;
  std::vector<DomainClass> excluded_domains;
  Diagnostics diagnostics;  // of reading the kernel library
};

// Converts the parsed flags and reads the kernel library, if --library names one.
Result<AttributionOptions> parse_attribution_options(const AttributionFlags& flags);

// The query of a report with these options. Takes the library and the excluded domains out of `options`.
attribution::ReportQuery make_report_query(AttributionOptions& options);

}  // namespace joulemap::cli
