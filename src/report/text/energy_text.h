// SPDX-License-Identifier: Apache-2.0
//
// Formats energies and sizes, from microjoules to gigajoules, with a suitable unit prefix. Pure.
#pragma once

#include <string>

namespace joulemap::report {

// "12.3 mJ", "4.56 J", "1.2 MJ": at most eight columns.
std::string energy_text(double energy_j);
// "12.3 mJ (10.1 .. 15.2)": the bounds use the unit of the estimate.
std::string interval_text(double energy_j, double low_j, double high_j);
// "29.3 G", "1.2 k": SI prefix without a unit.
std::string si_prefixed_text(double amount);

}  // namespace joulemap::report
