// SPDX-License-Identifier: Apache-2.0
#include "base/amount_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace joulemap {
namespace {

struct UnitScale {
  double min_scaled_value;  // smallest absolute value that uses this unit
  double factor;
  std::string_view unit;
};

constexpr std::array<UnitScale, 4> kEnergyUnits = {{{1e6, 1e6, "MJ"}, {1e3, 1e3, "kJ"}, {1, 1, "J"}, {0, 1e-3, "mJ"}}};
constexpr std::array<UnitScale, 3> kTimeUnits = {{{7200, 3600, "h"}, {1, 1, "s"}, {0, 1e-3, "ms"}}};

// Three digits round this fraction of a power of ten up to it: 9.995 is 10.0, and 999.5 J is 1.00 kJ.
constexpr double kRoundedUpFraction = 0.9995;

template <std::size_t N>
std::string format_scaled(double value, const std::array<UnitScale, N>& scales) {
  for (const UnitScale& scale : scales) {
    if (std::abs(value) < kRoundedUpFraction * scale.min_scaled_value) continue;
    const double scaled_value = value / scale.factor;
    const double rounded_up_value = std::abs(scaled_value) / kRoundedUpFraction;
    const int decimals = rounded_up_value >= 100 ? 0 : rounded_up_value >= 10 ? 1 : 2;
    return fmt::format("{:.{}f} {}", scaled_value, decimals, scale.unit);
  }
  return "";
}

}  // namespace

std::string amount_text(double value, std::string_view unit) {
  if (value == 0) return fmt::format("0{}{}", unit.empty() ? "" : " ", unit);
  if (unit == "J") return format_scaled(value, kEnergyUnits);
  if (unit == "s") return format_scaled(value, kTimeUnits);
  return fmt::format("{:.4g}{}{}", value, unit.empty() ? "" : " ", unit);
}

std::string p_value_text(double p) {
  if (p < 1e-9) return "<1e-9";
  return p < 0.001 ? fmt::format("{:.1e}", p) : fmt::format("{:.3g}", p);
}

}  // namespace joulemap
