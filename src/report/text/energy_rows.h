// SPDX-License-Identifier: Apache-2.0
//
// Formats numbers and rows of energy tables, for all text reports. Rows fit 80 columns.
#pragma once

#include <optional>
#include <string>

#include "model/domain_energy.h"

namespace joulemap::report {

// At least `digits` significant digits; without an exponent from 1e-6 to 1e9.
std::string format_number(double value, int digits = 4);
// "-" if there is no value.
std::string format_optional_number(const std::optional<double>& value);

struct EnergyRow {
  std::string name;
  std::optional<double> energy_j;
  std::optional<double> half_width_j;
  std::optional<double> mean_power_w;
  std::string origin_text;
};

// A line of the table: "      12.34 J +- 0.5         123.4 W  package-0     measured, powercap".
std::string energy_row_text(const EnergyRow& row);

// Origin of the energy of a domain: "measured, powercap", "in package-0", "no value: frozen".
std::string domain_origin_text(const DomainEnergy& domain);

EnergyRow make_energy_row(const DomainEnergy& domain);

}  // namespace joulemap::report
