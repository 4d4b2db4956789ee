// SPDX-License-Identifier: Apache-2.0
#include "report/export/citation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "model/run_energy.h"
#include "model/run_rates.h"
#include "report/text/account_text.h"
#include "report/text/command_energy.h"
#include "report/text/energy_rows.h"
#include "report/text/text_style.h"
#include "report/text/wrapped_text.h"

namespace joulemap::report {
namespace {

std::string environment_fact_text(const ReportResult& result, std::string_view name) {
  for (const EnvironmentFact& fact : result.environment) {
    if (fact.name == name) return fact.value;
  }
  return {};
}

// "2 x NVIDIA H200, Intel Xeon". Old recordings contain no GPU model: then "unidentified GPU".
std::string cited_hardware(const ReportResult& result) {
  std::map<std::string, int> models;
  for (const DomainEnergy& domain : result.domains) {
    if (!domain.is_counted || (domain.device_model.empty() && domain.sensor != "nvml")) continue;
    ++models[domain.device_model.empty() ? "unidentified GPU" : domain.device_model];
  }
  std::string out;
  for (const auto& [model, count] : models) {
    out += (out.empty() ? "" : ", ") + (count > 1 ? fmt::format("{} x {}", count, model) : model);
  }
  const std::string cpu = environment_fact_text(result, "cpu");
  if (!cpu.empty()) out += (out.empty() ? "" : ", ") + cpu;
  return out;
}

// Lists the domains in the total with their sensors, and the domains and the time that the total does not include.
std::string included_domains_text(const ReportResult& result, const RunRates& rates) {
  std::string included_domains;
  std::string excluded_domains;
  for (const DomainEnergy& domain : result.domains) {
    if (!domain.is_counted && !is_outside_totals(domain)) continue;
    const bool is_included = domain.is_counted && domain.joules && domain.provenance == rates.provenance;
    std::string& domain_list = is_included ? included_domains : excluded_domains;
    domain_list += (domain_list.empty() ? "" : ", ") + domain.name;
    if (is_included && rates.provenance == Provenance::measured) domain_list += fmt::format(" by {}", domain.sensor);
  }
  std::string out = fmt::format("{}: {}", to_string(*rates.provenance), included_domains);
  if (!excluded_domains.empty()) out += fmt::format("; not included: {}", excluded_domains);
  if (result.is_clipped) out += "; " + partial_run_text(result);
  return out;
}

// Domains with energy that no sum contains.
std::vector<std::string> excluded_domains_with_energy(const ReportResult& result) {
  std::vector<std::string> names;
  for (const DomainEnergy& domain : result.domains) {
    if (is_outside_totals(domain) && domain.joules) names.push_back(domain.name);
  }
  return names;
}

std::string excluded_domains_text(const std::vector<std::string>& domains) {
  return printable(fmt::format("all domains with energy are excluded: {}", fmt::join(domains, ", ")));
}

std::string cited_energy_text(double energy_j, int digits = 4) {
  if (energy_j >= kJoulesPerKwh)
    return fmt::format("{} kWh ({} MJ)", format_number(energy_j / kJoulesPerKwh, digits),
                       format_number(energy_j / 1e6, digits));
  return energy_j >= 1e4 ? fmt::format("{} kJ", format_number(energy_j / 1e3, digits))
                         : fmt::format("{} J", format_number(energy_j, digits));
}

std::string quote_yaml(std::string_view text) {
  std::string out = "\"";
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

std::string partial_run_text(const ReportResult& result) {
  return fmt::format("only {} of the run", duration_text(compute_run_rates(result).time_s));
}

Error missing_energy_error(const ReportResult& result, std::string_view action) {
  const std::vector<std::string> excluded_domains = excluded_domains_with_energy(result);
  if (excluded_domains.empty()) {
    return {ErrorCode::unsupported, fmt::format("cannot {}: the recording contains no energy", action),
            "run joulemap doctor"};
  }
  return {ErrorCode::usage, fmt::format("cannot {}: {}", action, excluded_domains_text(excluded_domains)),
          "shorten --exclude"};
}

std::string citation_text(const ReportResult& result, std::string_view given_hardware, std::string_view version) {
  const RunRates rates = compute_run_rates(result);
  std::string subject;
  for (const std::string& argument : result.command) subject += (subject.empty() ? "" : " ") + printable(argument);
  if (!rates.energy_j) {
    const std::vector<std::string> excluded_domains = excluded_domains_with_energy(result);
    return fmt::format(
        "The energy of {} is unknown: {} (Joulemap {}).\n", subject.empty() ? "the run" : subject,
        excluded_domains.empty() ? "no sensor returned a value" : excluded_domains_text(excluded_domains), version);
  }
  const double half_width_j = rates.half_width_j.value_or(0);
  std::string text =
      fmt::format("{} used {} (± {}, {:.0f} % interval{}) in {}", subject.empty() ? "The run" : "\"" + subject + "\"",
                  cited_energy_text(*rates.energy_j), cited_energy_text(half_width_j, 2), 100 * result.interval,
                  rates.provenance == Provenance::measured ? " without the gain error of sensors" : "",
                  duration_text(rates.time_s));
  const RunRates command = command_rates(result);
  if (noticeable_background_j(result) > 0)
    text += fmt::format(", {} of it by the command", cited_energy_text(*command.energy_j));
  const std::string_view scope = are_other_processes_included(result) ? " with other processes" : "";
  if (command.steps)
    text += fmt::format(", {} J per step{} over {:.0f} steps", format_number(*command.energy_per_unit(command.steps)),
                        scope, *command.steps);
  if (command.samples)
    text += fmt::format(", {} J per sample{} over {:.0f} samples",
                        format_number(*command.energy_per_unit(command.samples)), scope, *command.samples);
  const std::string hardware = given_hardware.empty() ? cited_hardware(result) : printable(given_hardware);
  if (!hardware.empty()) text += fmt::format(", on {}", hardware);
  if (const std::string torch = environment_fact_text(result, "torch"); !torch.empty())
    text += fmt::format(" with PyTorch {}", torch);
  text += fmt::format(" ({}; Joulemap {}).", included_domains_text(result, rates), version);
  if (result.probe) text += " Probing of modules is not included.";
  if (!result.complete) text += " The recording is incomplete.";
  return text + "\n";
}

Result<std::string> model_card_markdown(const ReportResult& result, const ModelCardOptions& query,
                                        std::string_view version) {
  const RunRates rates = compute_run_rates(result);
  if (!rates.energy_j) return missing_energy_error(result, "write a model card");
  const std::string hardware = query.hardware_description.empty() ? cited_hardware(result) : query.hardware_description;
  const CarbonAccountEntry* const account =
      query.account && !query.account->entries.empty() ? &query.account->entries.front() : nullptr;
  const bool has_emissions = account != nullptr && account->gco2;
  std::string out = "co2_eq_emissions:\n";
  out += has_emissions
             ? fmt::format("  emissions: {}  # grams\n", format_number(*account->gco2))
             : "  # emissions: unknown without the carbon intensity of the grid (--region or --gco2-per-kwh)\n";
  std::string source =
      fmt::format("Joulemap {}: {} +- {} J, {}", version, format_number(*rates.energy_j),
                  format_number(rates.half_width_j.value_or(0), 2), included_domains_text(result, rates));
  if (!result.complete) source += ", incomplete recording";
  std::string location = query.compute_location;
  if (has_emissions) {
    const CarbonAccountAssumptions& assumptions = query.account->assumptions;
    source += fmt::format(", at {} gCO2eq/kWh ({})", format_number(*account->gco2_per_kwh),
                          carbon_origin_text(*assumptions.carbon_intensity));
    if (assumptions.pue != 1) source += fmt::format(", PUE {}", format_number(assumptions.pue, 2));
    if (location.empty()) location = assumptions.carbon_intensity->region;
  }
  out += fmt::format("  source: {}\n", quote_yaml(source));
  if (!query.training_type.empty()) out += fmt::format("  training_type: {}\n", quote_yaml(query.training_type));
  if (!location.empty()) out += fmt::format("  geographical_location: {}\n", quote_yaml(location));
  if (!hardware.empty()) out += fmt::format("  hardware_used: {}\n", quote_yaml(hardware));
  return out;
}

}  // namespace joulemap::report
