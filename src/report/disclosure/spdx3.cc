// SPDX-License-Identifier: Apache-2.0
//
// SPDX 3.0.1 with the AI profile, as JSON-LD: an ai_AIPackage with ai_energyConsumption. The format has no member for
// intervals and provenance: entries are in the order measured, estimated, and the comment of the package describes
// each. The AI profile also requires release time, supplier, download location and version of the package, which a
// recording does not contain: the document claims the conformance of no profile.
#include <fmt/format.h>

#include "formats/json_writer.h"
#include "formats/sha256.h"
#include "report/disclosure/disclosed_energy.h"

namespace joulemap::report {
namespace {

using formats::JsonWriter;

constexpr std::string_view kCreationInfoId = "_:creationinfo";

// Without an exponent, as xsd:decimal requires, and with ten significant digits of the smallest energies.
std::string xsd_decimal_text(double value) {
  std::string text = fmt::format("{:.15f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  return text.ends_with('.') ? text + "0" : text;
}

std::string_view spdx_energy_property(std::string_view stage) {
  if (stage == "inference") return "ai_inferenceEnergyConsumption";
  return stage == "fine-tuning" ? "ai_finetuningEnergyConsumption" : "ai_trainingEnergyConsumption";
}

JsonWriter& begin_spdx_element(JsonWriter& json, std::string_view type, const std::string& id, std::string_view name) {
  return json.begin_object()
      .member("type", type)
      .member("spdxId", id)
      .member("creationInfo", kCreationInfoId)
      .member("name", name);
}

}  // namespace

Result<Disclosure> spdx3_disclosure(const ReportResult& result, const DisclosureOptions& options,
                                    std::string_view version) {
  if (options.model_name.empty()) return missing_option_error("spdx3", "--model-name");
  if (options.lifecycle_stage.empty()) return missing_option_error("spdx3", "--stage");
  const Result<std::vector<DisclosedEnergy>> energies = collect_disclosed_energies(result, options.account);
  if (!energies) return energies.error();
  std::string comment;
  for (const DisclosedEnergy& energy : *energies)
    comment += (comment.empty() ? "" : ". ") + energy_statement(result, energy);
  const std::string creation_time_text = utc_time_text(options.created_unix_s);
  const std::string id_prefix = "https://spdx.org/spdxdocs/joulemap-" +
                                formats::sha256_hex(options.model_name + creation_time_text + comment).substr(0, 32) +
                                "#";
  JsonWriter json;
  json.begin_object()
      .member("@context", "https://spdx.org/rdf/3.0.1/spdx-context.jsonld")
      .key("@graph")
      .begin_array()
      .begin_object()
      .member("type", "CreationInfo")
      .member("@id", kCreationInfoId)
      .member("specVersion", "3.0.1")
      .member("created", creation_time_text)
      .key("createdBy")
      .begin_array()
      .value(id_prefix + "agent")
      .end_array()
      .end_object();
  begin_spdx_element(json, "SoftwareAgent", id_prefix + "agent", fmt::format("Joulemap {}", version)).end_object();
  begin_spdx_element(json, "ai_AIPackage", id_prefix + "model", options.model_name)
      .member("comment", fmt::format("Energy by Joulemap {}: {}", version, comment))
      .member("software_primaryPurpose", "model")
      .key("ai_energyConsumption")
      .begin_object()
      .member("type", "ai_EnergyConsumption")
      .key(spdx_energy_property(options.lifecycle_stage))
      .begin_array();
  for (const DisclosedEnergy& energy : *energies) {
    json.begin_object()
        .member("type", "ai_EnergyConsumptionDescription")
        .member("ai_energyQuantity", xsd_decimal_text(energy.energy_kwh))
        .member("ai_energyUnit", "kilowattHour")
        .end_object();
  }
  json.end_array().end_object().end_object();
  begin_spdx_element(json, "SpdxDocument", id_prefix + "document", "Energy of " + options.model_name)
      .key("rootElement")
      .begin_array()
      .value(id_prefix + "model")
      .end_array()
      .key("element")
      .begin_array()
      .value(id_prefix + "agent")
      .value(id_prefix + "model")
      .end_array()
      .end_object();
  json.end_array().end_object();
  return Disclosure{std::move(json).text() + "\n", {}};
}

}  // namespace joulemap::report
