// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/plot/plots.h"
#include "report/plot/svg_axes.h"
#include "report/plot/svg_frame.h"
#include "report/plot/svg_theme.h"
#include "report/text/energy_rows.h"
#include "scopes/path_tree.h"

namespace joulemap::report {
namespace {

constexpr double kDistributionRowHeight_px = 34;
constexpr double kDistributionNamesWidth_px = 290;
constexpr std::size_t kDefaultDistributionLayers = 16;
constexpr int kDistributionDensityPointCount = 80;

std::string distribution_row_label(const LayerDistribution& spread) {
  std::string name;
  for (const std::string& element : spread.path) name += (name.empty() ? "" : " ") + element;
  return name;
}

std::string_view distribution_row_colour(const LayerDistribution& spread) {
  return spread.path.size() > 1 ? colour_of_phase(spread.path[spread.path.size() - 2]) : kPalette[0];
}

double distribution_quantile(const LayerDistribution& spread, double share) {
  const double position = share * static_cast<double>(spread.quantiles_j.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(position), spread.quantiles_j.size() - 2);
  return spread.quantiles_j[below] +
         (position - static_cast<double>(below)) * (spread.quantiles_j[below + 1] - spread.quantiles_j[below]);
}

// Gaussian kernel density estimate from the quantiles, with Silverman's bandwidth from the interquartile range. Scaled
// to a maximum of 1.
std::vector<Point> estimate_density(const LayerDistribution& spread, double low, double high) {
  const double n = static_cast<double>(spread.quantiles_j.size());
  const double interquartile_range = distribution_quantile(spread, 0.75) - distribution_quantile(spread, 0.25);
  const double least = (high - low) / 200;
  const double width =
      std::max(0.9 * (interquartile_range > 0 ? interquartile_range / 1.34 : least) * std::pow(n, -0.2), least);
  std::vector<Point> curve;
  double highest = 0;
  for (int i = 0; i <= kDistributionDensityPointCount; ++i) {
    const double value = low + (high - low) * i / kDistributionDensityPointCount;
    double sum = 0;
    for (const double one : spread.quantiles_j) sum += std::exp(-0.5 * (value - one) * (value - one) / (width * width));
    curve.push_back({value, sum});
    highest = std::max(highest, sum);
  }
  for (Point& point : curve) point.y /= highest > 0 ? highest : 1;
  return curve;
}

void draw_violin(SvgCanvas& canvas, const PlotAxes& axes, double centre_y, const LayerDistribution& spread) {
  // From P1 to P99: outliers would stretch the violin to a thin line.
  const double low = distribution_quantile(spread, 0.01);
  const double high = distribution_quantile(spread, 0.99);
  const double density_margin = std::max((high - low) * 0.08, (axes.x.high_value - axes.x.low_value) / 400);
  std::vector<Point> outline;
  const std::vector<Point> curve =
      estimate_density(spread, std::max(low - density_margin, 0.0), high + density_margin);  // energies are >= 0
  const double half = kDistributionRowHeight_px / 2 - 4;
  for (const Point& point : curve) outline.push_back({axes.x.at(point.x), centre_y - half * point.y});
  for (auto point = curve.rbegin(); point != curve.rend(); ++point)
    outline.push_back({axes.x.at(point->x), centre_y + half * point->y});
  canvas.draw_polygon(outline, {distribution_row_colour(spread), 0.75, 0, distribution_row_label(spread)});
  canvas.draw_line({axes.x.at(distribution_quantile(spread, 0.25)), centre_y},
                   {axes.x.at(distribution_quantile(spread, 0.75)), centre_y}, {kTextColour, 3});
  canvas.draw_circle({axes.x.at(distribution_quantile(spread, 0.5)), centre_y}, 3, {"#ffffff"}, {kTextColour, 1.2});
}

void draw_box(SvgCanvas& canvas, const PlotAxes& axes, double centre_y, const LayerDistribution& spread) {
  const auto x = [&](double share) { return axes.x.at(distribution_quantile(spread, share)); };
  const double half = kDistributionRowHeight_px / 2 - 8;
  canvas.draw_line({x(0.05), centre_y}, {x(0.95), centre_y}, {kTextColour, 1.2});
  for (const double share : {0.05, 0.95})
    canvas.draw_line({x(share), centre_y - 5}, {x(share), centre_y + 5}, {kTextColour, 1.2});
  canvas.draw_rect({x(0.25), centre_y - half, std::max(x(0.75) - x(0.25), 1.0), 2 * half},
                   {distribution_row_colour(spread), 1, 2, distribution_row_label(spread)});
  canvas.draw_line({x(0.5), centre_y - half}, {x(0.5), centre_y + half}, {"#ffffff", 2});
  if (spread.mean_j < axes.x.high_value)
    canvas.draw_circle({axes.x.at(spread.mean_j), centre_y}, 2.6, {"#ffffff"}, {kTextColour, 1});
}

}  // namespace

Result<std::string> distributions_svg(const RunView& view, const PlotQuery& query) {
  std::vector<const LayerDistribution*> shown;
  for (const LayerDistribution& spread : view.layer_distributions) {
    if (spread.quantiles_j.size() < 2 || !scopes::path_matches_filter(spread.path, spread.device, query.name_filter))
      continue;
    if (shown.size() < query.max_items.value_or(kDefaultDistributionLayers)) shown.push_back(&spread);
  }
  if (shown.empty()) {
    return nothing_to_plot_error(fmt::format("no energy of {}s per step", plotted_distribution_level(query)),
                                 "mark steps with jm.step()");
  }
  const bool is_violin = query.plot == PlotKind::violin;
  const double height = kDistributionRowHeight_px * static_cast<double>(shown.size()) + 60;
  const std::string per = shown.front()->per;
  PlotFrame frame =
      make_plot_frame(view, find_level(view, plotted_distribution_level(query)),
                      fmt::format("Energy of {0}s per {1}", plotted_distribution_level(query), per), height);
  double highest = 0;
  for (const LayerDistribution* spread : shown)
    highest = std::max(highest, distribution_quantile(*spread, 0.99) * 1.03);
  const Rect plot_area{frame.plot_area.x + kDistributionNamesWidth_px, frame.plot_area.y + 8,
                       frame.plot_area.width - kDistributionNamesWidth_px - 16, height - 60};
  const PlotAxes axes{plot_area, {0, range_with_round_ends(0, highest, 6).high, plot_area.x, plot_area.right()}, {}};
  const std::string marker_legend =
      is_violin ? "bar: quartiles, dot: median" : "box: quartiles, whiskers: P5 and P95, dot: mean";
  draw_x_axis(frame.canvas, axes, fmt::format("joules per {}; {}", per, marker_legend), 6, true);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const double centre_y = plot_area.y + kDistributionRowHeight_px * (static_cast<double>(i) + 0.5);
    frame.canvas.draw_text({plot_area.x - 10, centre_y + 4},
                           shorten_to_width(distribution_row_label(*shown[i]), 12, kDistributionNamesWidth_px - 16),
                           {12, kTextColour, TextAnchor::end});
    is_violin ? draw_violin(frame.canvas, axes, centre_y, *shown[i])
              : draw_box(frame.canvas, axes, centre_y, *shown[i]);
  }
  return std::move(frame.canvas).finish();
}

}  // namespace joulemap::report
