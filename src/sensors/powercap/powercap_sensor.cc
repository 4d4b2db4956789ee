// SPDX-License-Identifier: Apache-2.0
#include "sensors/powercap/powercap_sensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/small_file.h"
#include "base/text.h"
#include "sensors/counter_file.h"
#include "sensors/file_sensor.h"
#include "sensors/powercap/zones.h"
#include "sensors/rapl.h"
#include "sensors/remedies.h"

namespace joulemap::sensors {
namespace {

constexpr std::string_view kPowercapSensorName = "powercap";
constexpr double kJoulesPerMicrojoule = 1e-6;

Channel make_zone_channel(const PowercapZone& zone, const std::string& path) {
  Channel channel;
  channel.name = zone.is_duplicate ? zone.domain + "-mmio" : zone.domain;
  channel.sensor = kPowercapSensorName;
  channel.source = path;
  channel.domain = zone.domain;
  channel.part_of = zone.part_of;
  channel.domain_class = zone.domain_class;
  channel.is_countable = !zone.name.empty();  // without a name its coverage is unknown
  channel.scale = kJoulesPerMicrojoule;
  channel.refresh_s = kRaplUpdatePeriod_s;
  if (const Result<std::string> range = read_small_file(zone.directory + "/max_energy_range_uj")) {
    const auto value = parse_u64(*range);
    if (value && *value > 0) channel.wrap_range = value;
  }
  return channel;
}

struct OpenedZones {
  std::vector<CounterFile> files;
  std::vector<Channel> channels;
  std::vector<UnreadableChannel> unreadable;
  std::vector<Error> open_errors;  // one for each unreadable channel
};

std::string read_code_name_of_error(ErrorCode code) {
  switch (code) {
    case ErrorCode::permission:
      return std::string(to_string(ReadCode::denied));
    case ErrorCode::malformed:
      return std::string(to_string(ReadCode::garbage));
    default:
      return std::string(to_string(ReadCode::failed));
  }
}

OpenedZones open_zones(const std::vector<PowercapZone>& zones) {
  OpenedZones opened;
  for (const PowercapZone& zone : zones) {
    const std::string path = zone.directory + "/energy_uj";
    Result<CounterFile> file = open_counter_file(path);
    if (!file && file.error().code == ErrorCode::not_found) continue;  // a zone that only limits power
    if (!file) {
      opened.unreadable.push_back({make_zone_channel(zone, path), read_code_name_of_error(file.error().code)});
      opened.open_errors.push_back(std::move(file).error());
      continue;
    }
    opened.files.push_back(std::move(*file));
    opened.channels.push_back(make_zone_channel(zone, path));
  }
  return opened;
}

void set_status_from_errors(const std::vector<Error>& errors, const ProbeContext& context, SensorStatus& status) {
  const auto permission_error = std::find_if(errors.begin(), errors.end(),
                                             [](const Error& error) { return error.code == ErrorCode::permission; });
  status.state = permission_error != errors.end() ? SensorState::denied : SensorState::absent;
  status.reason = permission_error != errors.end() ? permission_error->message : errors.front().message;
  if (status.state == SensorState::denied) {
    status.remedy = remedy_for_denied_powercap(context.host(), context.program_path());
  } else {
    status.remedy = "the powercap driver did not write this file; check where it comes from";
  }
}

void diagnose_zones(const OpenedZones& opened, const ProbeContext& context, SensorStatus& status) {
  for (const Error& error : opened.open_errors) {
    const bool is_denied = error.code == ErrorCode::permission;
    status.diagnostics.add({is_denied ? "sensor_denied" : "sensor_unreadable", 1, error.message,
                            is_denied ? remedy_for_denied_powercap(context.host(), context.program_path()) : ""});
  }
  for (const Channel& channel : opened.channels) {
    if (channel.wrap_range) continue;
    status.diagnostics.add(
        {"unknown_range", 1,
         fmt::format("{}: max_energy_range_uj cannot be read; a wrap will look like a reset", channel.source), ""});
  }
}

}  // namespace

ProbeResult probe_powercap(const ProbeContext& context) {
  ProbeResult probe;
  probe.status.name = kPowercapSensorName;
  const Result<std::vector<PowercapZone>> zones = find_powercap_zones(context.root());
  if (!zones) {
    set_status_from_errors({zones.error()}, context, probe.status);
    return probe;
  }
  OpenedZones opened = open_zones(*zones);
  probe.status.unreadable = opened.unreadable;
  if (opened.channels.empty() && !opened.open_errors.empty()) {
    set_status_from_errors(opened.open_errors, context, probe.status);
    return probe;
  }
  if (opened.channels.empty()) {
    probe.status.reason = fmt::format("no energy zones in {}: {}", context.root().path("/sys/class/powercap"),
                                      reason_for_absent_rapl(context.host()));
    probe.status.remedy = remedy_for_absent_rapl(context.host());
    return probe;
  }
  diagnose_zones(opened, context, probe.status);
  probe.status.state = SensorState::measured;
  probe.status.reason =
      fmt::format("{} energy counters in {}", opened.channels.size(), context.root().path("/sys/class/powercap"));
  probe.status.channels = opened.channels;
  probe.sensors.push_back(std::make_unique<FileSensor>(std::move(opened.files), std::move(opened.channels)));
  return probe;
}

}  // namespace joulemap::sensors
