// SPDX-License-Identifier: Apache-2.0
//
// Writes the page of a run, for `report --html` and `open`. Main thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/attribution_options.h"
#include "cli/command.h"
#include "model/diagnostics.h"

namespace joulemap::cli {

// The file that records a run unless -o names another, and that `report` and `open` read unless one is named.
inline constexpr std::string_view kDefaultRecording = "run.joule";

// The recordings that a verb reads: the named ones, or run.joule. Fails if none is named and run.joule does not exist.
Result<std::vector<std::string>> recordings_or_default(std::vector<std::string> named, std::string_view verb);

// Returns the notes of the run. The page contains all levels, and the user selects one there.
Result<Diagnostics> write_page(const std::vector<std::string>& recordings, const std::string& path,
                               const AttributionFlags& flags, const CommandLine& line);

}  // namespace joulemap::cli
