// SPDX-License-Identifier: Apache-2.0
#include "cli/wrapped_command.h"

#include <fmt/format.h>

namespace joulemap::cli {

std::vector<std::string> collect_wrapped_command(const CLI::App& verb, const CommandLine& line) {
  std::vector<std::string> command = verb.remaining();
  if (!command.empty() && line.has_double_dash) command.emplace_back("--");
  command.insert(command.end(), line.command_words.begin(), line.command_words.end());
  return command;
}

void add_keep_arguments_flag(CLI::App& verb, bool& keeps_arguments) {
  verb.add_flag("--keep-arguments", keeps_arguments,
                "store the command unchanged; default: values of --api-key and similar options become ***");
}

void note_unavailable_sensors(std::span<const SensorStatus> sensors, bool are_requested_by_name,
                              Diagnostics& diagnostics) {
  bool measured = false;
  bool has_channels = false;
  for (const SensorStatus& sensor : sensors) {
    measured = measured || sensor.state == SensorState::measured;
    has_channels = has_channels || !sensor.channels.empty();
  }
  for (const SensorStatus& sensor : sensors) {
    diagnostics.add_all(sensor.diagnostics);
    const bool is_denied = sensor.state == SensorState::denied && !measured;
    const bool is_missing =
        are_requested_by_name && (sensor.state == SensorState::denied || sensor.state == SensorState::absent);
    if (!is_denied && !is_missing) continue;
    diagnostics.add({is_denied ? "sensor_denied" : "sensor_absent", 1,
                     fmt::format("{}: {}", sensor.name, sensor.reason), sensor.remedy});
  }
  if (has_channels && !measured) {
    diagnostics.add({"only_estimated", 1, "no sensor is readable on this machine: all energies are estimates",
                     "run joulemap doctor"});
  }
  if (!has_channels) {
    diagnostics.add({"no_sensor", 1, "no sensor or estimate is available on this machine", "run joulemap doctor"});
  }
}

}  // namespace joulemap::cli
