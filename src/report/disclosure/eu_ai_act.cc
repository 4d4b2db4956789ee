// SPDX-License-Identifier: Apache-2.0
//
// Regulation (EU) 2024/1689, Annex XI, Section 1, point 2(e): "known or estimated energy consumption of the model". The
// regulation defines no file format: the schema is joulemap.euaiact/1, with a sentence for the documentation.
#include <fmt/format.h>

#include <algorithm>

#include "formats/json_writer.h"
#include "model/run_energy.h"
#include "model/run_rates.h"
#include "report/disclosure/disclosed_energy.h"

namespace joulemap::report {
namespace {

constexpr double kKwhPerMwh = 1000;

std::string eu_ai_act_statement(const ReportResult& result, const std::vector<DisclosedEnergy>& energies,
                                const DisclosureOptions& options, std::string_view version) {
  std::string text = fmt::format("Energy consumption of {}{}, recorded with Joulemap {}:",
                                 options.model_name.empty() ? "the model" : options.model_name,
                                 options.lifecycle_stage.empty() ? "" : " during " + options.lifecycle_stage, version);
  for (const DisclosedEnergy& energy : energies)
    text += fmt::format("{} {}", &energy == &energies.front() ? "" : ";", energy_statement(result, energy));
  return text + ".";
}

}  // namespace

Result<Disclosure> eu_ai_act_disclosure(const ReportResult& result, const DisclosureOptions& options,
                                        std::string_view version) {
  const Result<std::vector<DisclosedEnergy>> energies = collect_disclosed_energies(result, options.account);
  if (!energies) return energies.error();
  formats::JsonWriter json;
  json.begin_object()
      .member("schema", "joulemap.euaiact/1")
      .member("provision", "Regulation (EU) 2024/1689, Annex XI, Section 1, point 2(e)")
      .member("joulemap", version)
      .text_or_null("model", options.model_name)
      .text_or_null("stage", options.lifecycle_stage)
      .member("interval", result.interval)
      .member("elapsed_s", compute_run_rates(result).time_s)
      .key("energy")
      .begin_array();
  for (const DisclosedEnergy& energy : *energies) {
    std::optional<double> low_mwh;
    std::optional<double> high_mwh;
    if (energy.half_width_kwh) {
      low_mwh = std::max(energy.energy_kwh - *energy.half_width_kwh, 0.0) / kKwhPerMwh;
      high_mwh = (energy.energy_kwh + *energy.half_width_kwh) / kKwhPerMwh;
    }
    json.begin_object()
        .member("provenance", to_string(energy.provenance))
        .member("energy_mwh", energy.energy_kwh / kKwhPerMwh)
        .member("low_mwh", low_mwh)
        .member("high_mwh", high_mwh)
        .key("domains")
        .begin_array();
    for (const std::string& domain : energy.domain_names) json.value(domain);
    json.end_array().end_object();
  }
  json.end_array().key("not_included").begin_array();
  for (const std::string& domain : list_domains_not_included(result)) json.value(domain);
  json.end_array().member("statement", eu_ai_act_statement(result, *energies, options, version)).end_object();
  return Disclosure{std::move(json).text() + "\n", {}};
}

}  // namespace joulemap::report
