// SPDX-License-Identifier: Apache-2.0
// unity: alone (cmake/unity_groups.py), because libjoulemap.so uses this file and would otherwise link all of src/report
#include "report/json/doctor_json.h"

#include "formats/json_writer.h"
#include "model_json/diagnostics_json.h"

namespace joulemap::report {
namespace {

void write_channel(formats::JsonWriter& json, const Channel& channel) {
  json.begin_object()
      .member("name", channel.name)
      .member("unit", unit_of(channel.quantity))
      .member("kind", to_string(channel.kind))
      .member("domain", channel.domain)
      .text_or_null("part_of", channel.part_of)
      .member("source", channel.source)
      .text_or_null("model", channel.model)
      .end_object();
}

void write_sensor(formats::JsonWriter& json, const SensorStatus& sensor) {
  json.begin_object()
      .member("name", sensor.name)
      .member("state", to_string(sensor.state))
      .member("reason", sensor.reason)
      .text_or_null("remedy", sensor.remedy)
      .key("channels")
      .begin_array();
  for (const Channel& channel : sensor.channels) write_channel(json, channel);
  json.end_array();
  write_diagnostics(json, sensor.diagnostics);
  json.end_object();
}

}  // namespace

std::string doctor_json(const DoctorResult& result) {
  formats::JsonWriter json;
  json.begin_object().member("schema", "joulemap.doctor/1").member("version", result.version);
  json.key("host")
      .begin_object()
      .member("machine", result.host.machine)
      .member("virtual", result.host.is_virtual)
      .text_or_null("container", result.host.container)
      .end_object();
  json.key("sensors").begin_array();
  for (const SensorStatus& sensor : result.sensors) write_sensor(json, sensor);
  json.end_array().end_object();
  return std::move(json).text();
}

}  // namespace joulemap::report
