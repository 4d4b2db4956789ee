// SPDX-License-Identifier: Apache-2.0
//
// Numbers in sentences: "418 kJ", "2.6 h", "p = 0.0020". Pure.
#pragma once

#include <string>
#include <string_view>

namespace joulemap {

// Three digits that count; joules in mJ to MJ, seconds in ms to h, other units as they are.
std::string amount_text(double value, std::string_view unit);
// Three digits, "<1e-9" below.
std::string p_text(double p);

}  // namespace joulemap
