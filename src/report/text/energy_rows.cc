// SPDX-License-Identifier: Apache-2.0
#include "report/text/energy_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/printable_text.h"

namespace joulemap::report {
namespace {

constexpr int kMaxDecimals = 9;

}  // namespace

std::string format_number(double value, int digits) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  std::string scientific_text = fmt::format("{:.{}e}", value, digits - 1);
  if (size >= 1e9 || size < 1e-6) return scientific_text;
  // The exponent after rounding: 9.9996 with four digits is 10.00.
  const int exponent = std::atoi(scientific_text.c_str() + scientific_text.find('e') + 1);
  return fmt::format("{:.{}f}", value, std::clamp(digits - 1 - exponent, 0, kMaxDecimals));
}

std::string format_optional_number(const std::optional<double>& value) { return value ? format_number(*value) : "-"; }

std::string domain_origin_text(const DomainEnergy& domain) {
  if (!domain.joules) return fmt::format("no value: {}", printable(domain.reason));
  const std::string_view provenance = to_string(*domain.provenance);
  if (!domain.is_counted && !domain.part_of.empty()) return fmt::format("in {}", printable(domain.part_of));
  if (!domain.is_counted) return fmt::format("{}, not counted", provenance);
  if (domain.provenance == Provenance::estimated) return std::string(provenance);
  return fmt::format("{}, {}", provenance, printable(domain.sensor));
}

// Energy is not negative: an interval that reaches below 0 is printed as a range from 0.
std::string energy_interval_text(const EnergyRow& row) {
  if (!row.half_width_j) return {};
  if (!row.energy_j || *row.half_width_j <= *row.energy_j)
    return fmt::format("+- {}", format_number(*row.half_width_j, 2));
  return fmt::format("0 .. {}", format_number(*row.energy_j + *row.half_width_j, 2));
}

std::string energy_row_text(const EnergyRow& row) {
  const std::string half_width_text = energy_interval_text(row);
  const std::string line =
      fmt::format("  {:>11} J {:<12} {:>9} W  {:<13} {}", format_optional_number(row.energy_j), half_width_text,
                  format_optional_number(row.mean_power_w), printable(row.name), row.origin_text);
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

EnergyRow make_energy_row(const DomainEnergy& domain) {
  const bool is_contained_domain = !domain.part_of.empty() && !domain.is_counted;
  return {(is_contained_domain ? "  " : "") + domain.name, domain.joules, domain.uncertainty_j, domain.mean_w,
          domain_origin_text(domain)};
}

}  // namespace joulemap::report
