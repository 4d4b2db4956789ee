// SPDX-License-Identifier: Apache-2.0
//
// Formats numbers for sentences: "418 kJ", "2.6 h", "p = 0.0020". Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace joulemap {

// Three significant digits; joules in mJ to MJ, seconds in ms to h, other units unscaled.
std::string amount_text(double value, std::string_view unit);
// Three significant digits, or "<1e-9".
std::string p_text(double p);

}  // namespace joulemap
