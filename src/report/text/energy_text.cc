// SPDX-License-Identifier: Apache-2.0
#include "report/text/energy_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

#include "report/text/energy_rows.h"

namespace joulemap::report {
namespace {

struct SiPrefix {
  double unit_factor;
  std::string_view prefix_letter;
};
constexpr std::array<SiPrefix, 8> kSiPrefixes = {
    {{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}, {1e-3, "m"}, {1e-6, "u"}}};
constexpr double kNextPrefixThreshold = 0.9995;  // 999.5 J has three digits as 1.00 kJ

// The largest prefix for which the rounded number is at least 1; micro for smaller amounts, no prefix for 0.
SiPrefix choose_si_prefix(double unscaled_value) {
  for (const SiPrefix& prefix : kSiPrefixes) {
    if (std::abs(unscaled_value) >= kNextPrefixThreshold * prefix.unit_factor) return prefix;
  }
  return unscaled_value == 0 ? SiPrefix{1, ""} : kSiPrefixes.back();
}

}  // namespace

std::string energy_text(double energy_j) {
  const SiPrefix prefix = choose_si_prefix(energy_j);
  return fmt::format("{} {}J", format_number(energy_j / prefix.unit_factor, 3), prefix.prefix_letter);
}

std::string interval_text(double energy_j, double low_j, double high_j) {
  const double unit = choose_si_prefix(energy_j).unit_factor;
  return fmt::format("{} ({} .. {})", energy_text(energy_j), format_number(low_j / unit, 3),
                     format_number(high_j / unit, 3));
}

std::string si_prefixed_text(double unscaled_value) {
  const SiPrefix prefix = choose_si_prefix(unscaled_value);
  return fmt::format("{} {}", format_number(unscaled_value / prefix.unit_factor, 3), prefix.prefix_letter);
}

}  // namespace joulemap::report
