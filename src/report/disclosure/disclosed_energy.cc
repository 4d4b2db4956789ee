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

void append_if_absent(std::vector<std::string>& list, const std::string& text) {
  if (std::ranges::count(list, text) == 0) list.push_back(text);
}

const CarbonAccountEntry* find_account_entry(const std::optional<CarbonAccount>& account, Provenance provenance) {
  if (!account) return nullptr;
  const auto& entries = account->entries;
  const auto found = std::ranges::find(entries, provenance, &CarbonAccountEntry::provenance);
  return found == entries.end() ? nullptr : &*found;
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
void add_cpu_hardware(const ReportResult& result, std::vector<DisclosedHardware>& list) {
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
  for (const std::string& model : models) list.push_back({model, "cpu", count});
}

}  // namespace

Result<std::vector<DisclosedEnergy>> collect_disclosed_energies(const ReportResult& result,
                                                                const std::optional<CarbonAccount>& account) {
  std::vector<DisclosedEnergy> list;
  for (const Provenance provenance : {Provenance::measured, Provenance::estimated}) {
    const std::optional<EnergyWithProvenance> energy = energy_without_probing(result, provenance);
    if (!energy) continue;
    DisclosedEnergy one;
    one.provenance = provenance;
    one.energy_kwh = energy->joules / kJoulesPerKwh;
    one.facility_kwh = one.energy_kwh;
    if (energy->uncertainty_j) one.half_width_kwh = *energy->uncertainty_j / kJoulesPerKwh;
    if (const CarbonAccountEntry* const entry = find_account_entry(account, provenance)) {
      one.facility_kwh = entry->facility_j / kJoulesPerKwh;
      one.emissions_gco2 = entry->gco2;
    }
    for (const DomainEnergy& domain : result.domains) {
      if (!domain.is_counted || !domain.joules || domain.provenance != provenance) continue;
      one.domain_names.push_back(fmt::format("{} by {}", domain.name, domain.sensor));
      append_if_absent(is_gpu_domain(domain) ? one.gpu_sensors : one.cpu_sensors, domain.sensor);
    }
    list.push_back(std::move(one));
  }
  if (list.empty()) return missing_energy_error(result, "disclose energy");
  return list;
}

std::string energy_statement(const ReportResult& result, const DisclosedEnergy& energy) {
  std::string text = fmt::format("{}: {} kWh", to_string(energy.provenance), format_number(energy.energy_kwh));
  if (energy.half_width_kwh)
    text += fmt::format(" +- {} ({:.0f} % interval)", format_number(*energy.half_width_kwh, 2), 100 * result.interval);
  text += fmt::format(", {}", fmt::join(energy.domain_names, ", "));
  if (const std::vector<std::string> missing = list_domains_not_included(result); !missing.empty())
    text += fmt::format("; not included: {}", fmt::join(missing, ", "));
  if (result.is_clipped) text += fmt::format("; {}", partial_run_text(result));
  if (result.probe) text += "; probing of modules is not included";
  if (!result.complete) text += "; the recording is incomplete";
  return printable(text);
}

std::string find_environment_fact(const ReportResult& result, std::string_view name) {
  const auto found = std::ranges::find(result.environment, name, &EnvironmentFact::name);
  return found == result.environment.end() ? std::string() : found->value;
}

std::vector<DisclosedHardware> collect_disclosed_hardware(const ReportResult& result) {
  std::map<std::string, int> models;
  for (const DomainEnergy& domain : result.domains) {
    if (!domain.is_counted || (domain.device_model.empty() && domain.sensor != "nvml")) continue;
    ++models[domain.device_model];
  }
  std::vector<DisclosedHardware> list;
  for (const auto& [model, count] : models) list.push_back({model, "gpu", count});
  add_cpu_hardware(result, list);
  return list;
}

std::string utc_time_text(std::int64_t unix_s) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(unix_s)));
}

Error missing_option_error(std::string_view format, std::string_view option) {
  return {ErrorCode::usage, fmt::format("--disclose {} needs {}", format, option), "add the option"};
}

}  // namespace joulemap::report
