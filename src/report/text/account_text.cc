// SPDX-License-Identifier: Apache-2.0
#include "report/text/account_text.h"

#include <fmt/format.h>

#include "report/text/energy_rows.h"
#include "report/text/energy_text.h"

namespace joulemap::report {
namespace {

std::string account_line(double amount, const std::string& text) {
  return fmt::format("  {:>11} {}\n", format_number(amount), text);
}

std::string account_entry_text(const CarbonAccountEntry& entry, const CarbonAccountAssumptions& assumptions,
                               const TextStyle& style) {
  const std::string provenance(to_string(entry.provenance));
  std::string out;
  if (assumptions.pue != 1) {
    out += account_line(entry.facility_j,
                        fmt::format("J in the data center, from {} J {} (PUE {})", format_number(entry.energy_j),
                                    provenance, format_number(assumptions.pue, 2)));
  }
  if (entry.gco2) {
    std::string half_width;
    if (entry.gco2_high)
      half_width = fmt::format(" ({} {})", style.plus_minus_sign(), format_number(*entry.gco2_high - *entry.gco2, 2));
    out += account_line(*entry.gco2, fmt::format("g CO2e{} from {} energy, at {} g/kWh", half_width, provenance,
                                                 format_number(*entry.gco2_per_kwh, 3)));
  }
  if (entry.price) {
    out += account_line(*entry.price, fmt::format("price of {} energy, at {} per kWh", provenance,
                                                  format_number(assumptions.price_per_kwh.value_or(0), 2)));
  }
  return out;
}

}  // namespace

std::string carbon_origin_text(const CarbonIntensity& carbon) {
  std::string text = carbon.region;
  if (carbon.year) text += fmt::format("{}{}", text.empty() ? "" : ", average of ", *carbon.year);
  return text + (text.empty() ? "" : ", ") + carbon.source;
}

std::string account_text(const CarbonAccount& account, const TextStyle& style) {
  const CarbonAccountAssumptions& assumptions = account.assumptions;
  std::string out = "\n" + style.bold(" Carbon and price") + "\n";
  for (const CarbonAccountEntry& entry : account.entries) out += account_entry_text(entry, assumptions, style);
  if (account.entries.empty()) out += "  unknown, as the energy is\n";
  if (account.embodied_gco2) {
    out += account_line(*account.embodied_gco2, fmt::format("g CO2e embodied: the run's share of {} kg over {} years",
                                                            format_number(assumptions.embodied->kg, 2),
                                                            format_number(assumptions.embodied->lifetime_years, 2)));
  }
  for (const EverydayEquivalent& equivalent : account.everyday_equivalents)
    out += account_line(equivalent.amount,
                        fmt::format("{} of {} ({})", equivalent.unit, equivalent.name, equivalent.source));
  if (assumptions.carbon_intensity)
    out += fmt::format("  carbon intensity: {}; its error is not included\n",
                       carbon_origin_text(*assumptions.carbon_intensity));
  return out;
}

}  // namespace joulemap::report
