// SPDX-License-Identifier: Apache-2.0
//
// Writes the HTML page of a run, for `report --html` and `open`. Main thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/attribution_options.h"
#include "cli/command.h"
#include "model/diagnostics.h"

namespace joulemap::cli {

// The file that `record` and `import` write without -o, and that `report` and `open` read without an argument.
inline constexpr std::string_view kDefaultRecording = "run.joule";

// Returns `recording_files`, or run.joule if `recording_files` is empty; then fails if run.joule does not exist.
Result<std::vector<std::string>> recordings_or_default(std::vector<std::string> recording_files, std::string_view verb);

// Writes the page of these recordings to the file `path`; shows progress on stderr. Returns the diagnostics of the run.
Result<Diagnostics> write_page(const std::vector<std::string>& recordings, const std::string& path,
                               const AttributionFlags& flags, const CommandLine& line);

}  // namespace joulemap::cli
