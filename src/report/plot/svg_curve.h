// SPDX-License-Identifier: Apache-2.0
//
// Curves of a plot: smoothing, and mapping to pixels. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "report/plot/svg_axes.h"

namespace joulemap::report {

// Centred moving average over `width` points; the window shrinks symmetrically towards both ends. 0 or 1: unchanged.
std::vector<Point> moving_mean(std::span<const Point> points, std::size_t width);
// Maps points in units of the axes to pixels.
std::vector<Point> to_pixels(std::span<const Point> values, const Axes& axes);

}  // namespace joulemap::report
