// SPDX-License-Identifier: Apache-2.0
#include "report/json/advice_json.h"

#include "formats/json_writer.h"
#include "model_json/diagnostics_json.h"

namespace joulemap::report {
namespace {

using formats::JsonWriter;

void write_string_array(JsonWriter& json, std::string_view name, const std::vector<std::string>& texts) {
  json.key(name).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

}  // namespace

std::string advice_json(const Advice& advice) {
  JsonWriter json;
  json.begin_object().member("schema", "joulemap.advice/1").member("interval", advice.interval);
  write_string_array(json, "inputs", advice.inputs);
  write_string_array(json, "command", advice.command);
  json.key("part").begin_object().member("steady", advice.examined_run_part.is_steady);
  json.member("steps",
              advice.examined_run_part.steps > 0 ? std::optional(advice.examined_run_part.steps) : std::nullopt)
      .end_object();
  const bool is_gpu = advice.processor == AdvisedProcessor::gpu;
  json.member("gpu_energy_j", is_gpu ? advice.energy_j : std::nullopt);
  json.member("processor", advice.energy_j ? std::optional<std::string_view>(is_gpu ? "gpu" : "cpu") : std::nullopt);
  json.member("energy_j", advice.energy_j).key("findings").begin_array();
  for (const Finding& finding : advice.findings) {
    json.begin_object()
        .member("rule", finding.rule)
        .member("title", finding.title)
        .member("change", finding.change)
        .member("energy_j", finding.energy_j)
        .member("saves_j", finding.saved_energy_j)
        .member("low_j", finding.low_j)
        .member("high_j", finding.high_j)
        .member("saves_s", finding.saved_time_s);
    write_string_array(json, "evidence", finding.evidence);
    json.end_object();
  }
  json.end_array();
  write_diagnostics(json, advice.diagnostics);
  json.end_object();
  return std::move(json).text();
}

}  // namespace joulemap::report
