// SPDX-License-Identifier: Apache-2.0
//
// Axes of a plot: scales, ticks at round numbers, grid lines and labels. Pure functions; coordinates in pixels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/plot/svg_canvas.h"

namespace joulemap::report {

// Maps a range of values to a range of pixels.
struct Scale {
  double low = 0;
  double high = 1;
  double low_pixel = 0;  // pixel of `low`
  double high_pixel = 1;

  double at(double value) const {
    return high > low ? low_pixel + (value - low) / (high - low) * (high_pixel - low_pixel) : low_pixel;
  }
};

// Ticks 1, 2 or 5 times a power of ten apart, all within the range; about `wanted`, at least one for a non-empty range.
std::vector<double> nice_ticks(double low, double high, int wanted);
// The range extended to the next ticks on both sides.
struct Range {
  double low = 0;
  double high = 1;
};
Range nice_range(double low, double high, int wanted);

// "0", "0.5", "1500", "20k": as short as the tick spacing `step` allows.
std::string tick_label(double value, double step);

// Plot area and scales: the y axis draws horizontal grid lines with labels on the left, the x axis marks with labels
// below.
struct Axes {
  Rect plot_area;
  Scale x;
  Scale y;
};
void draw_y_axis(SvgCanvas& canvas, const Axes& axes, std::string_view title, int wanted = 5);
void draw_x_axis(SvgCanvas& canvas, const Axes& axes, std::string_view title, int wanted = 8, bool has_lines = false);

}  // namespace joulemap::report
