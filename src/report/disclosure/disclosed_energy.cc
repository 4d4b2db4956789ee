// SPDX-License-Identifier: Apache-2.0
#include "report/disclosure/disclosed_energy.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <map>

#include "base/printable_text.h"
#include "model/run_energy.h"
#include "report/text/energy_rows.h"
#include "report/text/wrapped_text.h"

namespace joulemap::report {
namespace {

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::ranges::count(list, text) == 0) list.push_back(text);
}

const AccountEntry* account_entry(const std::optional<Account>& account, Provenance provenance) {
  if (!account) return nullptr;
  const auto& entries = account->entries;
  const auto found = std::ranges::find(entries, provenance, &AccountEntry::provenance);
  return found == entries.end() ? nullptr : &*found;
}

bool is_gpu(const DomainEnergy& domain) { return domain.name.find("gpu") != std::string::npos; }

}  // namespace

Result<std::vector<DisclosedEnergy>> disclosed_energies(const ReportResult& result,
                                                        const std::optional<Account>& account) {
  std::vector<DisclosedEnergy> list;
  for (const Provenance provenance : {Provenance::measured, Provenance::estimated}) {
    const std::optional<EnergyWithProvenance> energy = run_energy(result, provenance);
    if (!energy) continue;
    DisclosedEnergy one;
    one.provenance = provenance;
    one.kwh = energy->joules / kJoulesPerKwh;
    one.facility_kwh = one.kwh;
    if (energy->uncertainty_j) one.half_width_kwh = *energy->uncertainty_j / kJoulesPerKwh;
    if (const AccountEntry* const entry = account_entry(account, provenance)) {
      one.facility_kwh = entry->facility_j / kJoulesPerKwh;
      one.gco2 = entry->gco2;
    }
    for (const DomainEnergy& domain : result.domains) {
      if (!domain.counted || !domain.joules || domain.provenance != provenance) continue;
      one.domains.push_back(fmt::format("{} by {}", domain.name, domain.sensor));
      add_once(is_gpu(domain) ? one.gpu_sensors : one.cpu_sensors, domain.sensor);
    }
    list.push_back(std::move(one));
  }
  if (list.empty()) {
    return Error{ErrorCode::unsupported, "cannot disclose energy: the recording contains none", "run joulemap doctor"};
  }
  return list;
}

std::string energy_statement(const ReportResult& result, const DisclosedEnergy& energy) {
  std::string text = fmt::format("{}: {} kWh", to_string(energy.provenance), format_number(energy.kwh));
  if (energy.half_width_kwh)
    text += fmt::format(" +- {} ({:.0f} % interval)", format_number(*energy.half_width_kwh, 2), 100 * result.interval);
  text += fmt::format(", {}", fmt::join(energy.domains, ", "));
  if (!result.totals.domains_without_value.empty())
    text += fmt::format("; not included: {}", fmt::join(result.totals.domains_without_value, ", "));
  if (result.probe) text += "; probing of modules is not included";
  if (!result.complete) text += "; the recording is incomplete";
  return printable(text);
}

std::string environment_fact(const ReportResult& result, std::string_view name) {
  const auto found = std::ranges::find(result.environment, name, &EnvironmentFact::name);
  return found == result.environment.end() ? std::string() : found->value;
}

std::vector<DisclosedHardware> disclosed_hardware(const ReportResult& result) {
  std::map<std::string, int> models;
  for (const DomainEnergy& domain : result.domains) {
    if (!domain.counted || (domain.device_model.empty() && domain.sensor != "nvml")) continue;
    ++models[domain.device_model];
  }
  std::vector<DisclosedHardware> list;
  for (const auto& [model, count] : models) list.push_back({model, "gpu", count});
  if (const std::string cpu = environment_fact(result, "cpu"); !cpu.empty()) list.push_back({cpu, "cpu", 1});
  return list;
}

std::string utc_text(std::int64_t unix_s) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(unix_s)));
}

Error missing_option(std::string_view format, std::string_view option) {
  return {ErrorCode::usage, fmt::format("--disclose {} needs {}", format, option), "add the option"};
}

}  // namespace joulemap::report
