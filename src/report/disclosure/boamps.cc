// SPDX-License-Identifier: Apache-2.0
//
// BoAmps energy report (Boavizta): report_schema.json and the schemas that it names. A recording does not contain the
// family of the task, its dataset and the type of infrastructure: they come from the document of the caller, whose
// values are kept.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "formats/document.h"
#include "formats/document_writer.h"
#include "formats/json_writer.h"
#include "report/disclosure/disclosed_energy.h"

namespace joulemap::report {
namespace {

using formats::DocumentMember;
using formats::DocumentValue;
using Table = DocumentValue::Table;
using Array = DocumentValue::Array;

DocumentValue text_value(std::string_view text) { return {std::string(text)}; }

void put(Table& table, std::string_view key, DocumentValue value) {
  table.push_back({std::string(key), std::move(value)});
}
void put_text(Table& table, std::string_view key, const std::string& text) {
  if (!text.empty()) put(table, key, text_value(text));
}

// "2026-11-18 15:00:00", the form that BoAmps prescribes.
std::string boamps_time(std::int64_t unix_s) {
  std::string text = utc_text(unix_s);
  text[10] = ' ';
  text.pop_back();
  return text;
}

// Name of the method in BoAmps: RAPL is read by two sensors.
std::string tracking_mode(const std::vector<std::string>& sensors) {
  std::string out;
  for (const std::string& sensor : sensors) {
    const std::string mode = sensor == "powercap" || sensor == "perf_event" ? "rapl" : sensor;
    if (out.find(mode) == std::string::npos) out += (out.empty() ? "" : "+") + mode;
  }
  return out;
}

DocumentValue measure_of(const ReportResult& result, const DisclosedEnergy& energy, std::string_view version) {
  Table table;
  put_text(table, "measurementMethod", fmt::format("joulemap ({})", to_string(energy.provenance)));
  put_text(table, "version", std::string(version));
  put_text(table, "cpuTrackingMode", tracking_mode(energy.cpu_sensors));
  put_text(table, "gpuTrackingMode", tracking_mode(energy.gpu_sensors));
  put(table, "powerConsumption", {energy.kwh});
  put(table, "measurementDuration", {result.elapsed_s});
  if (result.start_unix_ns) put_text(table, "measurementDateTime", boamps_time(*result.start_unix_ns / 1'000'000'000));
  return {std::move(table)};
}

// Classes of BoAmps: errors of up to 10, 25 and 50 %. Empty if the error is unknown or larger.
std::string quality_of(const DisclosedEnergy& energy) {
  if (!energy.half_width_kwh || energy.kwh <= 0) return {};
  const double error = *energy.half_width_kwh / energy.kwh;
  return error <= 0.1 ? "high" : error <= 0.25 ? "medium" : error <= 0.5 ? "low" : "";
}

DocumentValue task_of(const ReportResult& result, const std::vector<DisclosedEnergy>& energies,
                      const DisclosureOptions& options) {
  Table algorithm;
  constexpr std::array<std::string_view, 4> kFrameworks = {"torch", "tensorflow", "jax", "onnxruntime"};
  for (const std::string_view framework : kFrameworks) {
    const std::string version = environment_fact(result, framework);
    if (version.empty()) continue;
    put_text(algorithm, "framework", framework == "torch" ? "pytorch" : std::string(framework));
    put_text(algorithm, "frameworkVersion", version);
    break;
  }
  put_text(algorithm, "algorithmName", options.model_name);
  if (result.epochs > 0) put(algorithm, "epochsNumber", {static_cast<std::int64_t>(result.epochs)});
  std::string description;
  for (const DisclosedEnergy& energy : energies)
    description += (description.empty() ? "" : ". ") + energy_statement(result, energy);
  Table task;
  put_text(task, "taskStage", options.stage == "fine-tuning" ? "finetuning" : options.stage);
  put(task, "algorithms", {Array{{std::move(algorithm)}}});
  put_text(task, "taskDescription", description);
  return {std::move(task)};
}

DocumentValue components_of(const ReportResult& result) {
  Array components;
  for (const DisclosedHardware& hardware : disclosed_hardware(result)) {
    Table component;
    put_text(component, "componentName", hardware.name);
    put_text(component, "componentType", hardware.kind);
    put(component, "nbComponent", {static_cast<std::int64_t>(hardware.count)});
    components.push_back({std::move(component)});
  }
  return {std::move(components)};
}

Table environment_of(const DisclosureOptions& options) {
  Table environment;
  if (!options.account || !options.account->assumptions.carbon) return environment;
  const std::string& region = options.account->assumptions.carbon->region;
  if (region.empty() || region.find(':') != std::string::npos) return environment;  // country is required
  put_text(environment, "country", region);
  put_text(environment, "location", options.location);
  if (!options.account->entries.empty() && options.account->entries.front().gco2_per_kwh)
    put(environment, "powerSourceCarbonIntensity", {*options.account->entries.front().gco2_per_kwh});
  return environment;
}

// Adds to `base` the members that it does not have. Values of `base` are kept.
void complete(Table& base, const Table& addition) {
  for (const DocumentMember& member : addition) {
    const auto known =
        std::find_if(base.begin(), base.end(), [&](const DocumentMember& one) { return one.key == member.key; });
    if (known == base.end()) {
      base.push_back(member);
      continue;
    }
    Table* const inner = std::get_if<Table>(&known->value.content);
    if (inner != nullptr && member.value.table() != nullptr) complete(*inner, *member.value.table());
  }
}

std::vector<std::string> missing_members(const DocumentValue& report) {
  constexpr std::array<std::string_view, 6> kRequired = {"task.taskStage",           "task.taskFamily",
                                                         "task.algorithms",          "task.dataset",
                                                         "infrastructure.infraType", "infrastructure.components"};
  std::vector<std::string> missing;
  for (const std::string_view path : kRequired) {
    const DocumentValue* const value = report.find_path(path);
    const bool is_empty = value != nullptr && value->array() != nullptr && value->array()->empty();
    if (value == nullptr || is_empty) missing.emplace_back(path);
  }
  return missing;
}

}  // namespace

Result<Disclosure> boamps_disclosure(const ReportResult& result, const DisclosureOptions& options,
                                     std::string_view version) {
  const Result<std::vector<DisclosedEnergy>> energies = disclosed_energies(result, options.account);
  if (!energies) return energies.error();
  Table report;
  if (!options.base_json.empty()) {
    Result<DocumentValue> base = formats::read_json(options.base_json, "--into");
    if (!base) return std::move(base).error();
    if (base->table() == nullptr) return Error{ErrorCode::usage, "--into is no JSON object", "give a BoAmps report"};
    report = *base->table();
  }
  Table header;
  put_text(header, "formatVersionSpecificationUri", "https://github.com/Boavizta/BoAmps/tree/main/model");
  put_text(header, "reportDatetime", boamps_time(options.created_unix_s));
  put_text(header, "reportStatus", "draft");
  Array measures;
  for (const DisclosedEnergy& energy : *energies) measures.push_back(measure_of(result, energy, version));
  Table addition;
  put(addition, "header", {std::move(header)});
  put(addition, "task", task_of(result, *energies, options));
  put(addition, "measures", {std::move(measures)});
  put(addition, "system", {Table{{"os", text_value("linux")}}});
  put(addition, "infrastructure", {Table{{"components", components_of(result)}}});
  if (Table environment = environment_of(options); !environment.empty())
    put(addition, "environment", {std::move(environment)});
  put_text(addition, "quality", quality_of(energies->front()));
  complete(report, addition);
  const DocumentValue whole{std::move(report)};
  return Disclosure{formats::json_text(whole) + "\n", missing_members(whole)};
}

}  // namespace joulemap::report
