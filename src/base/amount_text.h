// SPDX-License-Identifier: Apache-2.0
//
// Formats numbers for sentences: "418 kJ", "2.60 h", "0.0123". Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace joulemap {

// Scales joules to mJ, J, kJ or MJ and seconds to ms, s or h, with about three significant digits. Other units are not
// scaled and have four digits.
std::string amount_text(double value, std::string_view unit);
// A p-value with two or three significant digits, or "<1e-9".
std::string p_value_text(double p);

}  // namespace joulemap
