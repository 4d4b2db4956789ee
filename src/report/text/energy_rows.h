// SPDX-License-Identifier: Apache-2.0
//
// Formats numbers and the rows of energy tables, for all text reports. 80 columns.
#pragma once

#include <optional>
#include <string>

#include "model/domain_energy.h"

namespace joulemap::report {

// `digits` significant digits, without an exponent between a microjoule and a gigajoule.
std::string format_number(double value, int digits = 4);
// "-" if there is no value.
std::string format_optional_number(const std::optional<double>& value);

struct EnergyRow {
  std::string name;
  std::optional<double> joules;
  std::optional<double> half_width_j;
  std::optional<double> watts;
  std::string origin;
};

// "      12.34 J +- 0.5         123.4 W  package-0     measured, powercap"
std::string energy_row_text(const EnergyRow& row);

// Origin of a row: "measured, powercap", "in package-0", "no value: frozen".
std::string origin_text(const DomainEnergy& domain);

EnergyRow energy_row_of(const DomainEnergy& domain);

}  // namespace joulemap::report
