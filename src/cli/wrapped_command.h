// SPDX-License-Identifier: Apache-2.0
//
// What the verbs share that run a command: how it stands on the command line, and which sensors could have told more.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/command.h"
#include "model/diagnostics.h"
#include "model/sensor_status.h"

namespace joulemap::cli {

// "stat sh -c X -- Y": the dashes belong to the command that has begun before them.
std::vector<std::string> wrapped_command(const CLI::App& verb, const CommandLine& line);

// --keep-arguments: the command is written as it was given, secrets included.
void add_keep_arguments(CLI::App& verb, bool& keep);

// Sensors that could tell more than what is used, and what would open them.
void note_unavailable_sensors(std::span<const SensorStatus> sensors, bool asked_by_name, Diagnostics& diagnostics);

}  // namespace joulemap::cli
