// SPDX-License-Identifier: Apache-2.0
//
// Axes of a plot: where a value lies, round numbers to mark, and the lines and labels for them. Pure; pixels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/plot/svg_canvas.h"

namespace joulemap::report {

// From a range of values to a range of pixels.
struct Scale {
  double low = 0;
  double high = 1;
  double from = 0;  // the pixel of `low`
  double to = 1;

  double at(double value) const { return high > low ? from + (value - low) / (high - low) * (to - from) : from; }
};

// 1, 2 or 5 times a power of ten apart, all within the range; about `wanted` of them, never none for a range that is
// one.
std::vector<double> nice_ticks(double low, double high, int wanted);
// The range widened to the next ticks on both sides.
struct Range {
  double low = 0;
  double high = 1;
};
Range nice_range(double low, double high, int wanted);

// "0", "0.5", "1500", "20k": as short as all of the ticks allow.
std::string tick_text(double value, double step);

// The frame of a plot's inside: horizontal lines with labels on the left, marks with labels below.
struct Axes {
  Box inside;
  Scale x;
  Scale y;
};
void draw_y_axis(SvgCanvas& canvas, const Axes& axes, std::string_view title, int wanted = 5);
void draw_x_axis(SvgCanvas& canvas, const Axes& axes, std::string_view title, int wanted = 8, bool has_lines = false);

}  // namespace joulemap::report
