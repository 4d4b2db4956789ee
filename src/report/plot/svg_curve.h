// SPDX-License-Identifier: Apache-2.0
//
// Curves of a plot: means around each point, so that the way is seen and not the noise, and where points lie. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "report/plot/svg_axes.h"

namespace joulemap::report {

// Means over `width` points around each; fewer towards the ends, where there are none on one side. 0, 1: as it was.
std::vector<Point> smoothed(std::span<const Point> points, std::size_t width);
// In pixels.
std::vector<Point> placed(std::span<const Point> values, const Axes& axes);

}  // namespace joulemap::report
