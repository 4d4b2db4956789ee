// SPDX-License-Identifier: Apache-2.0
//
// Energies and sizes from a microjoule to gigajoules, in the unit that suits them. Pure.
#pragma once

#include <string>

namespace joulemap::report {

// "12.3 mJ", "4.56 J", "1.2 MJ": eight columns at most.
std::string energy_text(double energy_j);
// "12.3 mJ (10.1 .. 15.2)": the ends in the unit of the middle.
std::string interval_text(double energy_j, double low_j, double high_j);
// "29.3 G", "1.2 k": with the prefix of a thousand.
std::string prefixed_text(double amount);

}  // namespace joulemap::report
