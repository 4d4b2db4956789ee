// SPDX-License-Identifier: Apache-2.0
//
// BoAmps energy report (Boavizta): report_schema.json and the schemas that it names. A recording does not contain the
// family of the task, its dataset and the type of infrastructure: they come from the document of the caller, whose
// values are kept. The measures of the run are added to those of the document.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "formats/document.h"
#include "formats/document_writer.h"
#include "formats/json_writer.h"
#include "model/run_rates.h"
#include "report/disclosure/disclosed_energy.h"

namespace joulemap::report {
namespace {

using formats::DocumentMember;
using formats::DocumentValue;
using JsonTable = DocumentValue::Table;
using JsonArray = DocumentValue::Array;

DocumentValue json_text(std::string_view text) { return {std::string(text)}; }

void add_json_member(JsonTable& table, std::string_view key, DocumentValue value) {
  table.push_back({std::string(key), std::move(value)});
}
void add_json_text_member(JsonTable& table, std::string_view key, const std::string& text) {
  if (!text.empty()) add_json_member(table, key, json_text(text));
}

// "2026-11-18 15:00:00", the form that BoAmps prescribes.
std::string boamps_time_text(std::int64_t unix_s) {
  std::string text = utc_time_text(unix_s);
  text[10] = ' ';
  text.pop_back();
  return text;
}

// Name of the method in BoAmps: RAPL is read by two sensors.
std::string boamps_tracking_mode(const std::vector<std::string>& sensors) {
  std::string out;
  for (const std::string& sensor : sensors) {
    const std::string mode = sensor == "powercap" || sensor == "perf_event" ? "rapl" : sensor;
    if (out.find(mode) == std::string::npos) out += (out.empty() ? "" : "+") + mode;
  }
  return out;
}

DocumentValue boamps_measure(const ReportResult& result, const DisclosedEnergy& energy, std::string_view version) {
  JsonTable table;
  add_json_text_member(table, "measurementMethod", fmt::format("joulemap ({})", to_string(energy.provenance)));
  add_json_text_member(table, "version", std::string(version));
  add_json_text_member(table, "cpuTrackingMode", boamps_tracking_mode(energy.cpu_sensors));
  add_json_text_member(table, "gpuTrackingMode", boamps_tracking_mode(energy.gpu_sensors));
  add_json_member(table, "powerConsumption", {energy.energy_kwh});
  add_json_member(table, "measurementDuration", {compute_run_rates(result).time_s});
  if (result.start_unix_ns)
    add_json_text_member(table, "measurementDateTime", boamps_time_text(*result.start_unix_ns / 1'000'000'000));
  return {std::move(table)};
}

// Classes of BoAmps: errors of up to 10, 25 and 50 %. Empty if the error is unknown or larger.
std::string boamps_quality(const DisclosedEnergy& energy) {
  if (!energy.half_width_kwh || energy.energy_kwh <= 0) return {};
  const double error = *energy.half_width_kwh / energy.energy_kwh;
  return error <= 0.1 ? "high" : error <= 0.25 ? "medium" : error <= 0.5 ? "low" : "";
}

DocumentValue boamps_task(const ReportResult& result, const std::vector<DisclosedEnergy>& energies,
                          const DisclosureOptions& options) {
  JsonTable algorithm;
  constexpr std::array<std::string_view, 4> kFrameworkNames = {"torch", "tensorflow", "jax", "onnxruntime"};
  for (const std::string_view framework : kFrameworkNames) {
    const std::string version = find_environment_fact(result, framework);
    if (version.empty()) continue;
    add_json_text_member(algorithm, "framework", framework == "torch" ? "pytorch" : std::string(framework));
    add_json_text_member(algorithm, "frameworkVersion", version);
    break;
  }
  add_json_text_member(algorithm, "algorithmName", options.model_name);
  if (result.epochs > 0) add_json_member(algorithm, "epochsNumber", {static_cast<std::int64_t>(result.epochs)});
  std::string description;
  for (const DisclosedEnergy& energy : energies)
    description += (description.empty() ? "" : ". ") + energy_statement(result, energy);
  JsonTable task;
  add_json_text_member(task, "taskStage",
                       options.lifecycle_stage == "fine-tuning" ? "finetuning" : options.lifecycle_stage);
  add_json_member(task, "algorithms", {JsonArray{{std::move(algorithm)}}});
  add_json_text_member(task, "taskDescription", description);
  return {std::move(task)};
}

DocumentValue boamps_hardware_components(const ReportResult& result) {
  JsonArray components;
  for (const DisclosedHardware& hardware : collect_disclosed_hardware(result)) {
    JsonTable component;
    add_json_text_member(component, "componentName", hardware.name);
    add_json_text_member(component, "componentType", hardware.kind);
    if (hardware.count) add_json_member(component, "nbComponent", {static_cast<std::int64_t>(*hardware.count)});
    components.push_back({std::move(component)});
  }
  return {std::move(components)};
}

JsonTable boamps_environment(const DisclosureOptions& options) {
  JsonTable environment;
  if (!options.account || !options.account->assumptions.carbon_intensity) return environment;
  const std::string& region = options.account->assumptions.carbon_intensity->region;
  if (region.empty() || region.find(':') != std::string::npos) return environment;  // country is required
  add_json_text_member(environment, "country", region);
  add_json_text_member(environment, "location", options.compute_location);
  if (!options.account->entries.empty() && options.account->entries.front().gco2_per_kwh)
    add_json_member(environment, "powerSourceCarbonIntensity", {*options.account->entries.front().gco2_per_kwh});
  return environment;
}

// Whether a value contains nothing, such as a part of a template that the caller did not fill in.
bool is_blank(const DocumentValue& value) {
  if (const JsonTable* const table = value.table())
    return std::ranges::all_of(*table, [](const DocumentMember& member) { return is_blank(member.value); });
  if (const JsonArray* const array = value.array()) return std::ranges::all_of(*array, is_blank);
  const std::optional<std::string> text = value.text();
  return value.is_null() || (text && trim(*text).empty());
}

// Adds to `base` the members that it does not have or that are blank. Other values of `base` are kept.
void merge_missing_members(JsonTable& base, const JsonTable& added_table) {
  for (const DocumentMember& member : added_table) {
    const auto matching_member = std::find_if(
        base.begin(), base.end(), [&](const DocumentMember& base_member) { return base_member.key == member.key; });
    if (matching_member == base.end()) {
      base.push_back(member);
      continue;
    }
    JsonTable* const nested_table = std::get_if<JsonTable>(&matching_member->value.content);
    if (nested_table != nullptr && member.value.table() != nullptr) {
      merge_missing_members(*nested_table, *member.value.table());
    } else if (is_blank(matching_member->value)) {
      matching_member->value = member.value;
    }
  }
}

// Whether two measures are of the same run by the same method: the caller completes an earlier output.
bool is_same_boamps_measure(const DocumentValue& a, const DocumentValue& b) {
  const auto has_equal_text = [&](std::string_view key) {
    const DocumentValue* const left_value = a.find(key);
    const DocumentValue* const right_value = b.find(key);
    return left_value != nullptr && right_value != nullptr && left_value->text() &&
           left_value->text() == right_value->text();
  };
  return has_equal_text("measurementMethod") && has_equal_text("measurementDateTime");
}

// The measures of the caller, such as those of other tools, and then those of the run.
Result<JsonArray> merge_measures(const DocumentValue* base, JsonArray run_measures) {
  JsonArray measures;
  if (base != nullptr && !is_blank(*base)) {
    if (base->array() == nullptr) return Error{ErrorCode::usage, "--into: measures is no array", "correct the file"};
    for (const DocumentValue& measure : *base->array()) {
      const auto matching_measure = std::ranges::find_if(
          run_measures, [&](const DocumentValue& run_measure) { return is_same_boamps_measure(run_measure, measure); });
      if (matching_measure == run_measures.end()) {
        measures.push_back(measure);
      } else {
        merge_missing_members(std::get<JsonTable>(matching_measure->content), *measure.table());
      }
    }
  }
  measures.insert(measures.end(), run_measures.begin(), run_measures.end());
  return measures;
}

std::vector<std::string> missing_boamps_members(const DocumentValue& report) {
  constexpr std::array<std::string_view, 7> kRequiredBoampsMembers = {
      "task.taskStage", "task.taskFamily",          "task.algorithms",          "task.dataset",
      "measures",       "infrastructure.infraType", "infrastructure.components"};
  std::vector<std::string> missing_paths;
  for (const std::string_view path : kRequiredBoampsMembers) {
    const DocumentValue* const value = report.find_path(path);
    if (value == nullptr || is_blank(*value)) missing_paths.emplace_back(path);
  }
  const DocumentValue* const components = report.find_path("infrastructure.components");
  const auto has_no_count = [](const DocumentValue& component) {
    const DocumentValue* const count = component.find("nbComponent");
    return count == nullptr || is_blank(*count);
  };
  if (components == nullptr || components->array() == nullptr) return missing_paths;
  if (std::ranges::any_of(*components->array(), has_no_count))
    missing_paths.emplace_back("infrastructure.components.nbComponent");
  return missing_paths;
}

}  // namespace

Result<Disclosure> boamps_disclosure(const ReportResult& result, const DisclosureOptions& options,
                                     std::string_view version) {
  const Result<std::vector<DisclosedEnergy>> energies = collect_disclosed_energies(result, options.account);
  if (!energies) return energies.error();
  JsonTable report;
  if (!options.base_json.empty()) {
    Result<DocumentValue> base = formats::read_json(options.base_json, options.base_file);
    if (!base) return Error{base.error().code, base.error().message, "--into takes a BoAmps report in JSON"};
    if (base->table() == nullptr) return Error{ErrorCode::usage, "--into is no JSON object", "give a BoAmps report"};
    report = *base->table();
  }
  JsonArray run_measures;
  for (const DisclosedEnergy& energy : *energies) run_measures.push_back(boamps_measure(result, energy, version));
  const auto measures_member = std::ranges::find(report, "measures", &DocumentMember::key);
  Result<JsonArray> measures =
      merge_measures(measures_member == report.end() ? nullptr : &measures_member->value, std::move(run_measures));
  if (!measures) return std::move(measures).error();
  if (measures_member != report.end()) measures_member->value = {*measures};
  JsonTable header;
  add_json_text_member(header, "formatVersionSpecificationUri", "https://github.com/Boavizta/BoAmps/tree/main/model");
  add_json_text_member(header, "reportDatetime", boamps_time_text(options.created_unix_s));
  add_json_text_member(header, "reportStatus", "draft");
  JsonTable added_table;
  add_json_member(added_table, "header", {std::move(header)});
  add_json_member(added_table, "task", boamps_task(result, *energies, options));
  add_json_member(added_table, "measures", {std::move(*measures)});
  add_json_member(added_table, "system", {JsonTable{{"os", json_text("linux")}}});
  add_json_member(added_table, "infrastructure", {JsonTable{{"components", boamps_hardware_components(result)}}});
  if (JsonTable environment = boamps_environment(options); !environment.empty())
    add_json_member(added_table, "environment", {std::move(environment)});
  add_json_text_member(added_table, "quality", boamps_quality(energies->front()));
  merge_missing_members(report, added_table);
  const DocumentValue document{std::move(report)};
  return Disclosure{formats::json_text(document) + "\n", missing_boamps_members(document)};
}

}  // namespace joulemap::report
