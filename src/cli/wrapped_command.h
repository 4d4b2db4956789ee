// SPDX-License-Identifier: Apache-2.0
//
// Functions shared by `record` and `stat`, which run a command.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/command.h"
#include "model/diagnostics.h"
#include "model/sensor_status.h"

namespace joulemap::cli {

// The command to run: the words that the parser left, and those after "--". In "stat sh -c X -- Y" the command begins
// before the "--", which is then part of the command.
std::vector<std::string> collect_wrapped_command(const CLI::App& verb, const CommandLine& line);

// Declares --keep-arguments, which stores the command line with its secrets. `keeps_arguments` must outlive the parser.
void add_keep_arguments_flag(CLI::App& verb, bool& keeps_arguments);

// Adds the diagnostics of all sensors. Also adds a diagnostic for each denied sensor if no sensor can be measured, for
// each denied or absent one if the user named the sensors (`are_requested_by_name`), and one if there are only estimates or
// none.
void note_unavailable_sensors(std::span<const SensorStatus> sensors, bool are_requested_by_name,
                              Diagnostics& diagnostics);

}  // namespace joulemap::cli
