// SPDX-License-Identifier: Apache-2.0
//
// Formats energies and other amounts with three digits and an SI prefix, from micro to peta. Pure.
#pragma once

#include <string>

namespace joulemap::report {

// "12.3 mJ", "4.56 J", "1.20 MJ": at most eight columns from 0.1 uJ on.
std::string energy_text(double energy_j);
// "12.3 mJ (10.1 .. 15.2)": the bounds have the unit of the energy.
std::string interval_text(double energy_j, double low_j, double high_j);
// "29.3 G", "1.20 k": an amount with an SI prefix, to which the caller appends the unit.
std::string si_prefixed_text(double unscaled_value);

}  // namespace joulemap::report
