// SPDX-License-Identifier: Apache-2.0
//
// A curve in one line of text: a column each for equal slices of time, as high as its value. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace joulemap::report {

// The values brought down to `columns` by taking means; a blank where nothing is known. From 0 to `top`.
std::string sparkline(std::span<const std::optional<double>> values, std::size_t columns, double top, bool unicode);

}  // namespace joulemap::report
