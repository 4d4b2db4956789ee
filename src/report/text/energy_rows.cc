// SPDX-License-Identifier: Apache-2.0
#include "report/text/energy_rows.h"

#include <fmt/format.h>

#include <cmath>

namespace joulemap::report {

std::string format_number(double value, int digits) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size >= 1e9 || size < 1e-6) return fmt::format("{:.{}e}", value, digits - 1);
  int decimals = digits - 1;
  for (double limit = 10; limit <= size && decimals > 0; limit *= 10) --decimals;
  for (double limit = 1; limit > size && decimals < 9; limit /= 10) ++decimals;
  return fmt::format("{:.{}f}", value, decimals);
}

std::string format_optional_number(const std::optional<double>& value) { return value ? format_number(*value) : "-"; }

std::string domain_origin_text(const DomainEnergy& domain) {
  if (!domain.joules) return fmt::format("no value: {}", domain.reason);
  const std::string_view provenance = to_string(*domain.provenance);
  if (!domain.is_counted && !domain.part_of.empty()) return fmt::format("in {}", domain.part_of);
  if (!domain.is_counted) return fmt::format("{}, not counted", provenance);
  if (domain.provenance == Provenance::estimated) return std::string(provenance);
  return fmt::format("{}, {}", provenance, domain.sensor);
}

std::string energy_row_text(const EnergyRow& row) {
  const std::string half_width_text = row.half_width_j ? fmt::format("+- {}", format_number(*row.half_width_j, 2)) : "";
  const std::string line =
      fmt::format("  {:>11} J {:<12} {:>9} W  {:<13} {}", format_optional_number(row.energy_j), half_width_text,
                  format_optional_number(row.mean_power_w), row.name, row.origin_text);
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

EnergyRow make_energy_row(const DomainEnergy& domain) {
  const bool is_contained_domain = !domain.part_of.empty() && !domain.is_counted;
  return {(is_contained_domain ? "  " : "") + domain.name, domain.joules, domain.uncertainty_j, domain.mean_w,
          domain_origin_text(domain)};
}

}  // namespace joulemap::report
