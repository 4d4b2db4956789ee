// SPDX-License-Identifier: Apache-2.0
//
// Shared by the verbs that run a command: parsing the command, and notes about unavailable sensors.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/command.h"
#include "model/diagnostics.h"
#include "model/sensor_status.h"

namespace joulemap::cli {

// In "stat sh -c X -- Y" the dashes belong to the command that began before them.
std::vector<std::string> wrapped_command(const CLI::App& verb, const CommandLine& line);

// --keep-arguments: stores the command line unchanged, secrets included.
void add_keep_arguments(CLI::App& verb, bool& keep);

// Adds the notes of all sensors, and names unavailable sensors with the remedy: denied ones if nothing is measured,
// missing ones if requested by name.
void note_unavailable_sensors(std::span<const SensorStatus> sensors, bool requested_by_name, Diagnostics& diagnostics);

}  // namespace joulemap::cli
