// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "report/plot/plots.h"
#include "report/plot/svg_axes.h"
#include "report/plot/svg_curve.h"
#include "report/plot/svg_frame.h"
#include "report/plot/svg_theme.h"
#include "scopes/path_tree.h"

namespace joulemap::report {
namespace {

constexpr double kHeight = 340;
constexpr double kLeft = 62;
constexpr std::size_t kUsualLines = 7;     // number of colours in the palette
constexpr std::size_t kUsualWindows = 50;  // default smoothing window: 1/50 of the points
constexpr double kShareOfPoints = 0.995;   // quantile at which the axis ends, if outliers would flatten all lines

struct Line {
  const LayerDistribution* layer;
  std::vector<Point> points;
};

// Whether every point has a step number. Then the x axis shows steps, otherwise seconds.
bool has_steps(const std::vector<const LayerDistribution*>& layers) {
  return std::all_of(layers.begin(), layers.end(), [](const LayerDistribution* layer) {
    return std::all_of(layer->points.begin(), layer->points.end(),
                       [](const LayerEnergyPoint& point) { return point.step.has_value(); });
  });
}

std::vector<Line> lines_of(const std::vector<const LayerDistribution*>& layers, bool by_steps,
                           std::optional<std::size_t> width) {
  std::vector<Line> lines;
  for (const LayerDistribution* layer : layers) {
    std::vector<Point> points;
    for (const LayerEnergyPoint& point : layer->points) {
      points.push_back({by_steps ? static_cast<double>(*point.step) : point.time_s, point.energy_j});
    }
    const std::size_t window = width.value_or(points.size() / kUsualWindows);
    lines.push_back({layer, moving_mean(points, window)});
  }
  return lines;
}

double highest_of(const std::vector<Line>& lines) {
  std::vector<double> all;
  for (const Line& line : lines) {
    for (const Point& point : line.points) all.push_back(point.y);
  }
  std::sort(all.begin(), all.end());
  const double usual = all[static_cast<std::size_t>(static_cast<double>(all.size() - 1) * kShareOfPoints)];
  return all.back() < 1.5 * usual ? all.back() : usual * 1.05;
}

std::string how_smooth(const PlotQuery& query, const std::vector<Line>& lines) {
  const std::size_t width = query.smooth.value_or(lines.front().points.size() / kUsualWindows);
  return width > 1 ? fmt::format("; means over {} points", width / 2 * 2 + 1) : "";
}

}  // namespace

Result<std::string> lines_svg(const RunView& view, const PlotQuery& query) {
  std::vector<const LayerDistribution*> shown;
  for (const LayerDistribution& spread : view.layer_distributions) {
    if (spread.points.size() < 2 || !scopes::path_matches(spread.path, spread.device, query.filter)) continue;
    if (shown.size() < query.top.value_or(kUsualLines)) shown.push_back(&spread);
  }
  if (shown.empty()) {
    return nothing_to_plot_error(fmt::format("no energy of such {}s per step", distribution_level(query)),
                                 "mark steps with jm.step()");
  }
  const bool by_steps = has_steps(shown);
  std::vector<Line> lines = lines_of(shown, by_steps, query.smooth);
  std::vector<LegendEntry> names;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    names.push_back({fmt::format("{} {}", lines[i].layer->device, fmt::join(lines[i].layer->path, " ")), hue(i)});
  }
  const std::string per = shown.front()->per;
  SvgCanvas tried(kPlotWidth, 0, "", "");
  const double height_of_names = draw_legend(tried, {}, kPlotWidth - 2 * kPlotMargin, names);
  const std::string title = fmt::format("Energy of {}s over the run", distribution_level(query));
  PlotFrame frame =
      make_plot_frame(view, find_level(view, distribution_level(query)), title, kHeight + 70 + height_of_names);
  const double legend =
      draw_legend(frame.canvas, {frame.plot_area.x, frame.plot_area.y + 8}, frame.plot_area.width, names);
  const Rect plot_area{frame.plot_area.x + kLeft, frame.plot_area.y + legend + 24, frame.plot_area.width - kLeft,
                       kHeight};
  double first = lines.front().points.front().x;
  double last = first;
  for (const Line& line : lines) {
    first = std::min(first, line.points.front().x);
    last = std::max(last, line.points.back().x);
  }
  const double highest = highest_of(lines);
  const Axes axes{plot_area,
                  {first, last, plot_area.x, plot_area.right()},
                  {0, nice_range(0, highest, 5).high, plot_area.bottom(), plot_area.y}};
  draw_y_axis(frame.canvas, axes, fmt::format("joules per {}", per));
  draw_x_axis(frame.canvas, axes, (by_steps ? "step" : "seconds") + how_smooth(query, lines), 8);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (Point& point : lines[i].points) point.y = std::min(point.y, axes.y.high);
    frame.canvas.polyline(to_pixels(lines[i].points, axes), {hue(i), 1.6});
  }
  return std::move(frame.canvas).finish();
}

}  // namespace joulemap::report
