// SPDX-License-Identifier: Apache-2.0
//
// Software Carbon Intensity (ISO/IEC 21031:2024): SCI = ((E x I) + M) per R. The standard defines no file format: the
// schema is joulemap.sci/1. E is the energy of the computers times the PUE. Measured and estimated energy are entries
// of their own, each with its own score: they are never added.
#include <fmt/format.h>

#include "formats/json_writer.h"
#include "model/run_rates.h"
#include "report/disclosure/disclosed_energy.h"
#include "report/text/account_text.h"

namespace joulemap::report {
namespace {

std::optional<double> functional_unit_count(const RunRates& rates, std::string_view unit) {
  if (unit == "step") return rates.steps;
  if (unit == "epoch") return rates.epochs;
  return unit == "sample" ? rates.samples : std::optional(1.0);
}

}  // namespace

Result<Disclosure> sci_disclosure(const ReportResult& result, const DisclosureOptions& options,
                                  std::string_view version) {
  const Result<std::vector<DisclosedEnergy>> energies = collect_disclosed_energies(result, options.account);
  if (!energies) return energies.error();
  if (!options.account || !options.account->assumptions.carbon_intensity)
    return missing_option_error("sci", "a carbon intensity: --region, --gco2-per-kwh or --carbon-data");
  // Units of a part of a run are unknown, and a part is not the functional unit "run".
  if (result.is_clipped)
    return Error{ErrorCode::usage, "--disclose sci needs the whole run, not a part of it", "remove --time"};
  if (!options.account->embodied_gco2) return missing_option_error("sci", "the embodied carbon: --embodied-kg");
  const std::optional<double> units = functional_unit_count(compute_run_rates(result), options.functional_unit);
  if (!units || *units <= 0) {
    return Error{ErrorCode::usage, fmt::format("the recording contains no number of {}s", options.functional_unit),
                 "choose another --functional-unit, or mark them in the program"};
  }
  const CarbonAccountAssumptions& assumptions = options.account->assumptions;
  formats::JsonWriter json;
  json.begin_object()
      .member("schema", "joulemap.sci/1")
      .member("standard", "ISO/IEC 21031:2024")
      .member("joulemap", version)
      .member("interval", result.interval)
      .member("M_gco2", *options.account->embodied_gco2)
      .member("R", options.functional_unit)
      .member("units", *units)
      .member("pue", assumptions.pue)
      .member("carbon_source", carbon_origin_text(*assumptions.carbon_intensity))
      .key("entries")
      .begin_array();
  for (const CarbonAccountEntry& entry : options.account->entries) {
    const auto gco2_score = [&](const std::optional<double>& gco2) {
      std::optional<double> gco2_per_unit;
      if (gco2) gco2_per_unit = (*gco2 + *options.account->embodied_gco2) / *units;
      return gco2_per_unit;
    };
    json.begin_object()
        .member("provenance", to_string(entry.provenance))
        .member("E_kwh", entry.facility_j / kJoulesPerKwh)
        .member("I_gco2_per_kwh", entry.gco2_per_kwh)
        .member("sci_gco2_per_unit", gco2_score(entry.gco2))
        .member("low", gco2_score(entry.gco2_low))
        .member("high", gco2_score(entry.gco2_high))
        .end_object();
  }
  json.end_array().key("boundary").begin_array();
  for (const DisclosedEnergy& energy : *energies) json.value(energy_statement(result, energy));
  json.end_array().end_object();
  return Disclosure{std::move(json).text() + "\n", {}};
}

}  // namespace joulemap::report
