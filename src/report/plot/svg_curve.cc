// SPDX-License-Identifier: Apache-2.0
#include "report/plot/svg_curve.h"

#include <algorithm>

namespace joulemap::report {

std::vector<Point> moving_mean(std::span<const Point> points, std::size_t width) {
  const std::size_t max_half_width = width / 2;
  std::vector<double> sums = {0};
  for (const Point& point : points) sums.push_back(sums.back() + point.y);
  std::vector<Point> out;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::size_t window_half_width = std::min({max_half_width, i, points.size() - 1 - i});
    const double sum = sums[i + window_half_width + 1] - sums[i - window_half_width];
    out.push_back(window_half_width == 0 ? points[i]
                                         : Point{points[i].x, sum / static_cast<double>(2 * window_half_width + 1)});
  }
  return out;
}

std::vector<Point> to_pixel_points(std::span<const Point> values, const PlotAxes& axes) {
  std::vector<Point> out;
  for (const Point& value : values) out.push_back({axes.x.at(value.x), axes.y.at(value.y)});
  return out;
}

void draw_curve(SvgCanvas& canvas, const PlotAxes& axes, std::span<const std::optional<double>> values, double slice_s,
                const Stroke& stroke) {
  std::vector<Point> points;
  const auto draw_segment = [&] {
    if (points.size() == 1) points.push_back({points[0].x + 0.8, points[0].y});
    canvas.draw_polyline(points, stroke);
    points.clear();
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) {
      draw_segment();
      continue;
    }
    points.push_back({axes.x.at((static_cast<double>(i) + 0.5) * slice_s), axes.y.at(*values[i])});
  }
  draw_segment();
}

void draw_sparse_curve(SvgCanvas& canvas, const PlotAxes& axes, std::span<const std::optional<double>> values,
                       double slice_s, const Stroke& stroke) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i]) points.push_back({axes.x.at((static_cast<double>(i) + 0.5) * slice_s), axes.y.at(*values[i])});
  }
  canvas.draw_polyline(points, stroke);
}

}  // namespace joulemap::report
