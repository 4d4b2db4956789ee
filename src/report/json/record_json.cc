// SPDX-License-Identifier: Apache-2.0
#include "report/json/record_json.h"

#include "formats/json_writer.h"
#include "model_json/diagnostics_json.h"
#include "report/json/sampler_cost_json.h"

namespace joulemap::report {

std::string record_json(const RecordResult& result) {
  formats::JsonWriter json;
  json.begin_object().member("schema", "joulemap.record/1");
  json.key("command").begin_array();
  for (const std::string& argument : result.command) json.value(argument);
  json.end_array()
      .member("file", result.file)
      .member("file_bytes", result.file_bytes)
      .member("samples", result.samples)
      .member("lost_samples", result.lost_samples)
      .member("elapsed_s", result.elapsed_s)
      .member("exit_code", result.exit_code)
      .member("signal", result.signal)
      .member("measured_j", joules_of(result.energy.totals.measured))
      .member("estimated_j", joules_of(result.energy.totals.estimated));
  json.key("overhead").begin_object().member("cpu_s", result.overhead_cpu_s).key("share");
  result.elapsed_s > 0 ? json.value(result.overhead_cpu_s / result.elapsed_s) : json.null();
  write_sampler_costs(json, result.samplers);
  json.end_object();
  Diagnostics all_diagnostics = result.diagnostics;
  all_diagnostics.add_all(result.energy.diagnostics);
  write_diagnostics(json, all_diagnostics);
  json.end_object();
  return std::move(json).text();
}

std::string recording_variables_json(std::span<const std::string> variables) {
  formats::JsonWriter json;
  json.begin_object().member("schema", "joulemap.recording/1");
  json.key("variables").begin_object();
  for (const std::string& variable : variables) {
    const std::string_view text = variable;
    const std::size_t sign = text.find('=');
    json.member(text.substr(0, sign), text.substr(sign + 1));
  }
  json.end_object().end_object();
  return std::move(json).text();
}

}  // namespace joulemap::report
