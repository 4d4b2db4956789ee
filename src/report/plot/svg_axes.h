// SPDX-License-Identifier: Apache-2.0
//
// Axes of a plot: scales, ticks at round numbers, grid lines and labels. Coordinates in pixels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/plot/svg_canvas.h"

namespace joulemap::report {

// Maps a range of values to a range of pixels.
struct AxisScale {
  double low_value = 0;
  double high_value = 1;
  double low_pixel = 0;  // pixel of `low_value`
  double high_pixel = 1;

  double at(double value) const {
    return high_value > low_value
               ? low_pixel + (value - low_value) / (high_value - low_value) * (high_pixel - low_pixel)
               : low_pixel;
  }
};

// Ticks within the range, at multiples of 1, 2 or 5 times a power of ten; about `target_tick_count` of them. Few or
// none if the range lies between two such multiples.
std::vector<double> round_ticks(double low, double high, int target_tick_count);
// Ticks of a scale of decimal logarithms: at powers of ten, and at 2 and 5 times them if the range is short.
std::vector<double> logarithmic_ticks(const AxisScale& scale);
// A range of values.
struct ValueRange {
  double low = 0;
  double high = 1;
};
// The range from `low` to `high`, extended to the next multiple of the tick spacing on both sides.
ValueRange range_with_round_ends(double low, double high, int target_tick_count);

// Label of a tick: "0", "0.5", "1500", "20k". Has as many decimals as the tick spacing `step` needs.
std::string tick_label(double value, double step);

// Plot area and scales. The y axis has horizontal grid lines and labels on the left; the x axis has tick marks, or
// vertical grid lines if `has_lines`, and labels below.
struct PlotAxes {
  Rect plot_area;
  AxisScale x;
  AxisScale y;
};
void draw_y_axis(SvgCanvas& canvas, const PlotAxes& axes, std::string_view title, int target_tick_count = 5);
void draw_x_axis(SvgCanvas& canvas, const PlotAxes& axes, std::string_view title, int target_tick_count = 8,
                 bool has_lines = false);

}  // namespace joulemap::report
