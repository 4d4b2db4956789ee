// SPDX-License-Identifier: Apache-2.0
//
// What all disclosures share: the energies of a run by provenance, its hardware, and sentences about both. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/report_result.h"
#include "report/disclosure/disclosure.h"

namespace joulemap::report {

struct DisclosedEnergy {
  Provenance provenance = Provenance::measured;
  double energy_kwh = 0;  // of the computers: without PUE and probing
  std::optional<double> half_width_kwh;
  double facility_kwh = 0;                // with PUE
  std::optional<double> emissions_gco2;   // of facility_kwh; none without a carbon intensity
  std::vector<std::string> domain_names;  // "gpu0 by nvml"
  std::vector<std::string> cpu_sensors;   // sensors of the domains in the sum
  std::vector<std::string> gpu_sensors;
};

// One entry for each provenance, measured first. Fails if both are unknown.
Result<std::vector<DisclosedEnergy>> collect_disclosed_energies(const ReportResult& result,
                                                                const std::optional<CarbonAccount>& account);

// "measured: 0.00196 kWh +- 6.7e-07 (90 % interval), gpu0 by nvml; not included: dram-0; only 5.00 s of the run"
std::string energy_statement(const ReportResult& result, const DisclosedEnergy& energy);

// Value of a fact of the recording; empty without it.
std::string find_environment_fact(const ReportResult& result, std::string_view name);

struct DisclosedHardware {
  std::string name;
  std::string kind;          // "gpu", "cpu"
  std::optional<int> count;  // none: unknown
};
std::vector<DisclosedHardware> collect_disclosed_hardware(const ReportResult& result);

// "2026-11-18T15:00:00Z"
std::string utc_time_text(std::int64_t unix_s);

// Error of a disclosure that needs an option.
Error missing_option_error(std::string_view format, std::string_view option);

}  // namespace joulemap::report
