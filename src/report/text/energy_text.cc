// SPDX-License-Identifier: Apache-2.0
#include "report/text/energy_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

#include "report/text/energy_rows.h"

namespace joulemap::report {
namespace {

struct Prefix {
  double unit;
  std::string_view letter;
};
constexpr std::array<Prefix, 8> kPrefixes = {
    {{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}, {1e-3, "m"}, {1e-6, "u"}}};
constexpr double kRoundsUp = 0.9995;  // 999.5 J has three digits as 1.00 kJ

// The largest prefix for which the rounded number is at least 1; micro for smaller amounts, no prefix for 0.
Prefix prefix_of(double amount) {
  for (const Prefix& prefix : kPrefixes) {
    if (std::abs(amount) >= kRoundsUp * prefix.unit) return prefix;
  }
  return amount == 0 ? Prefix{1, ""} : kPrefixes.back();
}

}  // namespace

std::string energy_text(double energy_j) {
  const Prefix prefix = prefix_of(energy_j);
  return fmt::format("{} {}J", format_number(energy_j / prefix.unit, 3), prefix.letter);
}

std::string interval_text(double energy_j, double low_j, double high_j) {
  const double unit = prefix_of(energy_j).unit;
  return fmt::format("{} ({} .. {})", energy_text(energy_j), format_number(low_j / unit, 3),
                     format_number(high_j / unit, 3));
}

std::string si_prefixed_text(double amount) {
  const Prefix prefix = prefix_of(amount);
  return fmt::format("{} {}", format_number(amount / prefix.unit, 3), prefix.letter);
}

}  // namespace joulemap::report
