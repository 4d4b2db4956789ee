// SPDX-License-Identifier: Apache-2.0
//
// A curve in one line of text: one column per equal slice of time, with a height proportional to the value. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace joulemap::report {

// Averages the values to at most `columns` characters. Unknown values are blanks. The scale is 0 to `top`.
std::string sparkline(std::span<const std::optional<double>> values, std::size_t columns, double top, bool unicode);

}  // namespace joulemap::report
