// SPDX-License-Identifier: Apache-2.0
#include "report/disclosure/disclosed_energy.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <set>

#include "base/printable_text.h"
#include "model/run_energy.h"
#include "report/export/citation.h"
#include "report/text/energy_rows.h"
#include "report/text/wrapped_text.h"

namespace joulemap::report {
namespace {

void append_if_absent(std::vector<std::string>& texts, const std::string& text) {
  if (std::ranges::count(texts, text) == 0) texts.push_back(text);
}

const CarbonAccountEntry* find_account_entry(const std::optional<CarbonAccount>& account, Provenance provenance) {
  if (!account) return nullptr;
  const auto& entries = account->entries;
  const auto matching_entry = std::ranges::find(entries, provenance, &CarbonAccountEntry::provenance);
  return matching_entry == entries.end() ? nullptr : &*matching_entry;
}

bool is_gpu_domain(const DomainEnergy& domain) { return domain.name.find("gpu") != std::string::npos; }

// "node1/package-0" of "node1/package-0-die-1"; empty for domains that are no part of a CPU package.
std::string package_of_domain(std::string_view domain) {
  constexpr std::string_view kPackage = "package-";
  const std::size_t slash = domain.rfind('/');
  const std::size_t name = slash == std::string_view::npos ? 0 : slash + 1;
  if (!domain.substr(name).starts_with(kPackage)) return {};
  return std::string(domain.substr(0, domain.find('-', name + kPackage.size())));
}

// CPUs whose model the recording contains. Their number is known if all hosts have the same model.
void add_cpu_hardware(const ReportResult& result, std::vector<DisclosedHardware>& hardware) {
  std::set<std::string> packages;
  for (const DomainEnergy& domain : result.domains) {
    if (std::string package = package_of_domain(domain.name); !package.empty()) packages.insert(std::move(package));
  }
  std::set<std::string> models;
  for (const EnvironmentFact& fact : result.environment) {
    if (fact.name == "cpu" && !fact.value.empty()) models.insert(fact.value);
  }
  std::optional<int> count;
  if (models.size() == 1 && !packages.empty()) count = static_cast<int>(packages.size());
  for (const std::string& model : models) hardware.push_back({model, "cpu", count});
}

}  // namespace

Result<std::vector<DisclosedEnergy>> collect_disclosed_energies(const ReportResult& result,
                                                                const std::optional<CarbonAccount>& account) {
  std::vector<DisclosedEnergy> energies;
  for (const Provenance provenance : {Provenance::measured, Provenance::estimated}) {
    const std::optional<EnergyWithProvenance> energy = energy_without_probing(result, provenance);
    if (!energy) continue;
    DisclosedEnergy disclosed_energy;
    disclosed_energy.provenance = provenance;
    disclosed_energy.energy_kwh = energy->joules / kJoulesPerKwh;
    disclosed_energy.facility_kwh = disclosed_energy.energy_kwh;
    if (energy->uncertainty_j) disclosed_energy.half_width_kwh = *energy->uncertainty_j / kJoulesPerKwh;
    if (const CarbonAccountEntry* const entry = find_account_entry(account, provenance)) {
      disclosed_energy.facility_kwh = entry->facility_j / kJoulesPerKwh;
      disclosed_energy.emissions_gco2 = entry->gco2;
    }
    for (const DomainEnergy& domain : result.domains) {
      if (!domain.is_counted || !domain.joules || domain.provenance != provenance) continue;
      disclosed_energy.domain_names.push_back(fmt::format("{} by {}", domain.name, domain.sensor));
      append_if_absent(is_gpu_domain(domain) ? disclosed_energy.gpu_sensors : disclosed_energy.cpu_sensors,
                       domain.sensor);
    }
    energies.push_back(std::move(disclosed_energy));
  }
  if (energies.empty()) return missing_energy_error(result, "disclose energy");
  return energies;
}

std::string energy_statement(const ReportResult& result, const DisclosedEnergy& energy) {
  std::string text = fmt::format("{}: {} kWh", to_string(energy.provenance), format_number(energy.energy_kwh));
  if (energy.half_width_kwh)
    text += fmt::format(" +- {} ({:.0f} % interval)", format_number(*energy.half_width_kwh, 2), 100 * result.interval);
  text += fmt::format(", {}", fmt::join(energy.domain_names, ", "));
  if (const std::vector<std::string> excluded_domains = list_domains_not_included(result); !excluded_domains.empty())
    text += fmt::format("; not included: {}", fmt::join(excluded_domains, ", "));
  if (result.is_clipped) text += fmt::format("; {}", partial_run_text(result));
  if (result.probe) text += "; probing of modules is not included";
  if (!result.complete) text += "; the recording is incomplete";
  return printable(text);
}

std::string find_environment_fact(const ReportResult& result, std::string_view name) {
  const auto matching_fact = std::ranges::find(result.environment, name, &EnvironmentFact::name);
  return matching_fact == result.environment.end() ? std::string() : matching_fact->value;
}

std::vector<DisclosedHardware> collect_disclosed_hardware(const ReportResult& result) {
  std::map<std::string, int> models;
  for (const DomainEnergy& domain : result.domains) {
    if (!domain.is_counted || (domain.device_model.empty() && domain.sensor != "nvml")) continue;
    ++models[domain.device_model];
  }
  std::vector<DisclosedHardware> hardware;
  for (const auto& [model, count] : models) hardware.push_back({model, "gpu", count});
  add_cpu_hardware(result, hardware);
  return hardware;
}

std::string utc_time_text(std::int64_t unix_s) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(unix_s)));
}

Error missing_option_error(std::string_view format, std::string_view option) {
  return {ErrorCode::usage, fmt::format("--disclose {} needs {}", format, option), "add the option"};
}

}  // namespace joulemap::report
