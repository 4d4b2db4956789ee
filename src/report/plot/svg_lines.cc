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

constexpr double kLinePlotHeight_px = 340;
constexpr double kLinePlotLeftMargin_px = 62;
constexpr std::size_t kDefaultLineCount = 7;          // number of colours in the palette
constexpr std::size_t kDefaultSmoothingDivisor = 50;  // default smoothing window: 1/50 of the points
constexpr double kAxisEndQuantile = 0.995;  // quantile at which the axis ends, if outliers would flatten all lines

struct LayerLine {
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

std::vector<LayerLine> make_layer_lines(const std::vector<const LayerDistribution*>& layers, bool is_by_step,
                                        std::optional<std::size_t> width) {
  std::vector<LayerLine> lines;
  for (const LayerDistribution* layer : layers) {
    std::vector<Point> points;
    for (const LayerEnergyPoint& point : layer->points) {
      points.push_back({is_by_step ? static_cast<double>(*point.step) : point.time_s, point.energy_j});
    }
    const std::size_t window = width.value_or(points.size() / kDefaultSmoothingDivisor);
    lines.push_back({layer, moving_mean(points, window)});
  }
  return lines;
}

double y_axis_max(const std::vector<LayerLine>& lines) {
  std::vector<double> sorted_values;
  for (const LayerLine& line : lines) {
    for (const Point& point : line.points) sorted_values.push_back(point.y);
  }
  std::sort(sorted_values.begin(), sorted_values.end());
  const double quantile_value =
      sorted_values[static_cast<std::size_t>(static_cast<double>(sorted_values.size() - 1) * kAxisEndQuantile)];
  return sorted_values.back() < 1.5 * quantile_value ? sorted_values.back() : quantile_value * 1.05;
}

std::string smoothing_note(const PlotQuery& query, const std::vector<LayerLine>& lines) {
  const std::size_t width = query.smoothing_window.value_or(lines.front().points.size() / kDefaultSmoothingDivisor);
  return width > 1 ? fmt::format("; means over {} points", width / 2 * 2 + 1) : "";
}

}  // namespace

Result<std::string> lines_svg(const RunView& view, const PlotQuery& query) {
  std::vector<const LayerDistribution*> shown_distributions;
  for (const LayerDistribution& layer_distribution : view.layer_distributions) {
    if (layer_distribution.points.size() < 2 ||
        !scopes::path_matches_filter(layer_distribution.path, layer_distribution.device, query.name_filter))
      continue;
    if (shown_distributions.size() < query.max_items.value_or(kDefaultLineCount))
      shown_distributions.push_back(&layer_distribution);
  }
  if (shown_distributions.empty()) {
    return nothing_to_plot_error(fmt::format("no energy of such {}s per step", plotted_distribution_level(query)),
                                 "mark steps with jm.step()");
  }
  const bool is_by_step = has_steps(shown_distributions);
  std::vector<LayerLine> lines = make_layer_lines(shown_distributions, is_by_step, query.smoothing_window);
  std::vector<LegendEntry> names;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    names.push_back(
        {fmt::format("{} {}", lines[i].layer->device, fmt::join(lines[i].layer->path, " ")), palette_colour(i)});
  }
  const std::string reference_unit = shown_distributions.front()->per;
  SvgCanvas trial_canvas(kPlotWidth_px, 0, "", "");
  const double legend_height = draw_legend(trial_canvas, {}, kPlotWidth_px - 2 * kPlotMargin_px, names);
  const std::string title = fmt::format("Energy of {}s over the run", plotted_distribution_level(query));
  PlotFrame frame = make_plot_frame(view, find_level(view, plotted_distribution_level(query)), title,
                                    kLinePlotHeight_px + 70 + legend_height);
  const double legend =
      draw_legend(frame.canvas, {frame.plot_area.x, frame.plot_area.y + 8}, frame.plot_area.width, names);
  const Rect plot_area{frame.plot_area.x + kLinePlotLeftMargin_px, frame.plot_area.y + legend + 24,
                       frame.plot_area.width - kLinePlotLeftMargin_px, kLinePlotHeight_px};
  double min_x = lines.front().points.front().x;
  double max_x = min_x;
  for (const LayerLine& line : lines) {
    min_x = std::min(min_x, line.points.front().x);
    max_x = std::max(max_x, line.points.back().x);
  }
  const double highest = y_axis_max(lines);
  const PlotAxes axes{plot_area,
                      {min_x, max_x, plot_area.x, plot_area.right()},
                      {0, range_with_round_ends(0, highest, 5).high, plot_area.bottom(), plot_area.y}};
  draw_y_axis(frame.canvas, axes, fmt::format("joules per {}", reference_unit));
  draw_x_axis(frame.canvas, axes, (is_by_step ? "step" : "seconds") + smoothing_note(query, lines), 8);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (Point& point : lines[i].points) point.y = std::min(point.y, axes.y.high_value);
    frame.canvas.draw_polyline(to_pixel_points(lines[i].points, axes), {palette_colour(i), 1.6});
  }
  return std::move(frame.canvas).finish();
}

}  // namespace joulemap::report
