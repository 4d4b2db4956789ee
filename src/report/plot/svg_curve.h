// SPDX-License-Identifier: Apache-2.0
//
// Curves of a plot: a centred moving mean that removes noise, and the mapping to pixels. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "report/plot/svg_axes.h"

namespace joulemap::report {

// Mean over `width` points around each point; the window shrinks symmetrically towards the ends. 0 or 1: unchanged.
std::vector<Point> moving_mean(std::span<const Point> points, std::size_t width);
// Maps values to pixels.
std::vector<Point> to_pixels(std::span<const Point> values, const Axes& axes);

}  // namespace joulemap::report
