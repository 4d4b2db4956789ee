// SPDX-License-Identifier: Apache-2.0
//
// CycloneDX 1.6 (ECMA-424): a bill of materials with one machine-learning model, whose model card has
// environmentalConsiderations. Schema: bom-1.6.schema.json.
#include <fmt/format.h>

#include <algorithm>

#include "formats/json_writer.h"
#include "report/disclosure/disclosed_energy.h"

namespace joulemap::report {
namespace {

constexpr double kGramsPerTonne = 1e6;

void write_quantity_with_unit(formats::JsonWriter& json, std::string_view name, double value, std::string_view unit) {
  json.key(name).begin_object().member("value", value).member("unit", unit).end_object();
}

void write_property(formats::JsonWriter& json, std::string_view name, const std::string& value) {
  json.begin_object().member("name", name).member("value", value).end_object();
}

void write_energy_consumption(formats::JsonWriter& json, const ReportResult& result, const DisclosedEnergy& energy,
                              const DisclosureOptions& options) {
  json.begin_object().member("activity", options.lifecycle_stage).key("energyProviders").begin_array().end_array();
  write_quantity_with_unit(json, "activityEnergyCost", energy.facility_kwh, "kWh");
  if (energy.emissions_gco2)
    write_quantity_with_unit(json, "co2CostEquivalent", *energy.emissions_gco2 / kGramsPerTonne, "tCO2eq");
  json.key("properties").begin_array();
  write_property(json, "joulemap:provenance", std::string(to_string(energy.provenance)));
  if (energy.half_width_kwh) {
    const double pue = energy.energy_kwh > 0 ? energy.facility_kwh / energy.energy_kwh : 1;
    write_property(json, "joulemap:interval", fmt::format("{}", result.interval));
    write_property(json, "joulemap:low_kwh",
                   fmt::format("{}", std::max(energy.facility_kwh - pue * *energy.half_width_kwh, 0.0)));
    write_property(json, "joulemap:high_kwh", fmt::format("{}", energy.facility_kwh + pue * *energy.half_width_kwh));
  }
  if (options.account) write_property(json, "joulemap:pue", fmt::format("{}", options.account->assumptions.pue));
  write_property(json, "joulemap:statement", energy_statement(result, energy));
  json.end_array().end_object();
}

}  // namespace

Result<Disclosure> cyclonedx_disclosure(const ReportResult& result, const DisclosureOptions& options,
                                        std::string_view version) {
  if (options.model_name.empty()) return missing_option_error("cyclonedx", "--model-name");
  if (options.lifecycle_stage.empty()) return missing_option_error("cyclonedx", "--stage");
  const Result<std::vector<DisclosedEnergy>> energies = collect_disclosed_energies(result, options.account);
  if (!energies) return energies.error();
  formats::JsonWriter json;
  json.begin_object()
      .member("$schema", "http://cyclonedx.org/schema/bom-1.6.schema.json")
      .member("bomFormat", "CycloneDX")
      .member("specVersion", "1.6")
      .member("version", 1)
      .key("metadata")
      .begin_object()
      .member("timestamp", utc_time_text(options.created_unix_s))
      .key("tools")
      .begin_object()
      .key("components")
      .begin_array()
      .begin_object()
      .member("type", "application")
      .member("name", "joulemap")
      .member("version", version)
      .end_object()
      .end_array()
      .end_object()
      .end_object()
      .key("components")
      .begin_array()
      .begin_object()
      .member("type", "machine-learning-model")
      .member("name", options.model_name)
      .key("modelCard")
      .begin_object()
      .key("considerations")
      .begin_object()
      .key("environmentalConsiderations")
      .begin_object()
      .key("energyConsumptions")
      .begin_array();
  for (const DisclosedEnergy& energy : *energies) write_energy_consumption(json, result, energy, options);
  json.end_array().end_object().end_object().end_object().end_object().end_array().end_object();
  return Disclosure{std::move(json).text() + "\n", {}};
}

}  // namespace joulemap::report
