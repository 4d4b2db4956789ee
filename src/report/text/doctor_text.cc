// SPDX-License-Identifier: Apache-2.0
#include "report/text/doctor_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/text/diagnostics_text.h"
#include "report/text/wrapped_text.h"

namespace joulemap::report {
namespace {

std::string doctor_verdict_text(const DoctorResult& result) {
  const auto has_sensor_state = [&](SensorState state) {
    return std::any_of(result.sensors.begin(), result.sensors.end(),
                       [&](const SensorStatus& sensor) { return sensor.state == state; });
  };
  if (has_sensor_state(SensorState::measured)) return "Energy can be measured here.";
  if (has_sensor_state(SensorState::denied))
    return "Energy sensors exist, but this user may not read them. Commands that grant access are below.";
  if (has_sensor_state(SensorState::estimated))
    return "No energy can be measured here; CPU and memory energy is estimated.";
  return "No energy can be measured or estimated here.";
}

std::string sensor_channels_line(const SensorStatus& sensor) {
  std::string line;
  for (const Channel& channel : sensor.channels) {
    line += fmt::format("{}{} ({}, {})", line.empty() ? "" : ", ", channel.name, to_string(channel.kind),
                        unit_of(channel.quantity));
  }
  return line;
}

}  // namespace

std::string doctor_text(const DoctorResult& result) {
  std::string out =
      fmt::format("joulemap {} on {}{}\n", result.version, result.host.machine,
                  result.host.container.empty() ? "" : ", in a container (" + result.host.container + ")");
  out += doctor_verdict_text(result) + "\n";
  for (const SensorStatus& sensor : result.sensors) {
    const std::string indent(13, ' ');
    out += "\n";
    out += wrap_text(fmt::format("  {:<10} {:<9}  ", sensor.name, to_string(sensor.state)), sensor.reason);
    out += remedy_text(indent, sensor.remedy);
    if (!sensor.channels.empty()) out += wrap_text(indent + "channels: ", sensor_channels_line(sensor));
    for (const Diagnostic& diagnostic : sensor.diagnostics.list()) {
      out += wrap_text(indent + "note: ", diagnostic.message);
      out += remedy_text(indent, diagnostic.remedy);
    }
  }
  return out;
}

}  // namespace joulemap::report
