// SPDX-License-Identifier: Apache-2.0
//
// Curves of a plot: smoothing, mapping to pixels, drawing. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "report/plot/svg_axes.h"

namespace joulemap::report {

// Centred moving average over `width` points; the window shrinks symmetrically towards both ends. 0 or 1: unchanged.
std::vector<Point> moving_mean(std::span<const Point> points, std::size_t width);
// Maps points in units of the axes to pixels.
std::vector<Point> to_pixel_points(std::span<const Point> values, const PlotAxes& axes);

// Draws the values of equal slices from x = 0 as lines, with gaps where values are unknown.
void draw_curve(SvgCanvas& canvas, const PlotAxes& axes, std::span<const std::optional<double>> values, double slice_s,
                const Stroke& stroke);
// The same as one line across unknown values, for gauges that are read rarely.
void draw_sparse_curve(SvgCanvas& canvas, const PlotAxes& axes, std::span<const std::optional<double>> values,
                       double slice_s, const Stroke& stroke);

}  // namespace joulemap::report
