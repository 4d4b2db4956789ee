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

std::string distribution_row_label(const LayerDistribution& layer_distribution) {
  std::string name;
  for (const std::string& element : layer_distribution.path) name += (name.empty() ? "" : " ") + element;
  return name;
}

std::string_view distribution_row_colour(const LayerDistribution& layer_distribution) {
  return layer_distribution.path.size() > 1
             ? colour_of_phase(layer_distribution.path[layer_distribution.path.size() - 2])
             : kPalette[0];
}

double distribution_quantile(const LayerDistribution& layer_distribution, double share) {
  const double position = share * static_cast<double>(layer_distribution.quantiles_j.size() - 1);
  const auto lower_index = std::min(static_cast<std::size_t>(position), layer_distribution.quantiles_j.size() - 2);
  return layer_distribution.quantiles_j[lower_index] +
         (position - static_cast<double>(lower_index)) *
             (layer_distribution.quantiles_j[lower_index + 1] - layer_distribution.quantiles_j[lower_index]);
}

// Gaussian kernel density estimate from the quantiles, with Silverman's bandwidth from the interquartile range. Scaled
// to a maximum of 1.
std::vector<Point> estimate_density(const LayerDistribution& layer_distribution, double low, double high) {
  const double n = static_cast<double>(layer_distribution.quantiles_j.size());
  const double interquartile_range =
      distribution_quantile(layer_distribution, 0.75) - distribution_quantile(layer_distribution, 0.25);
  const double min_bandwidth = (high - low) / 200;
  const double width = std::max(
      0.9 * (interquartile_range > 0 ? interquartile_range / 1.34 : min_bandwidth) * std::pow(n, -0.2), min_bandwidth);
  std::vector<Point> curve;
  double highest = 0;
  for (int i = 0; i <= kDistributionDensityPointCount; ++i) {
    const double value = low + (high - low) * i / kDistributionDensityPointCount;
    double sum = 0;
    for (const double quantile_j : layer_distribution.quantiles_j)
      sum += std::exp(-0.5 * (value - quantile_j) * (value - quantile_j) / (width * width));
    curve.push_back({value, sum});
    highest = std::max(highest, sum);
  }
  for (Point& point : curve) point.y /= highest > 0 ? highest : 1;
  return curve;
}

void draw_violin(SvgCanvas& canvas, const PlotAxes& axes, double centre_y,
                 const LayerDistribution& layer_distribution) {
  // From P1 to P99: outliers would stretch the violin to a thin line.
  const double low = distribution_quantile(layer_distribution, 0.01);
  const double high = distribution_quantile(layer_distribution, 0.99);
  const double density_margin = std::max((high - low) * 0.08, (axes.x.high_value - axes.x.low_value) / 400);
  std::vector<Point> outline;
  const std::vector<Point> curve = estimate_density(layer_distribution, std::max(low - density_margin, 0.0),
                                                    high + density_margin);  // energies are >= 0
  const double half_height = kDistributionRowHeight_px / 2 - 4;
  for (const Point& point : curve) outline.push_back({axes.x.at(point.x), centre_y - half_height * point.y});
  for (auto point = curve.rbegin(); point != curve.rend(); ++point)
    outline.push_back({axes.x.at(point->x), centre_y + half_height * point->y});
  canvas.draw_polygon(
      outline, {distribution_row_colour(layer_distribution), 0.75, 0, distribution_row_label(layer_distribution)});
  canvas.draw_line({axes.x.at(distribution_quantile(layer_distribution, 0.25)), centre_y},
                   {axes.x.at(distribution_quantile(layer_distribution, 0.75)), centre_y}, {kTextColour, 3});
  canvas.draw_circle({axes.x.at(distribution_quantile(layer_distribution, 0.5)), centre_y}, 3, {"#ffffff"},
                     {kTextColour, 1.2});
}

void draw_box(SvgCanvas& canvas, const PlotAxes& axes, double centre_y, const LayerDistribution& layer_distribution) {
  const auto x = [&](double share) { return axes.x.at(distribution_quantile(layer_distribution, share)); };
  const double half_height = kDistributionRowHeight_px / 2 - 8;
  canvas.draw_line({x(0.05), centre_y}, {x(0.95), centre_y}, {kTextColour, 1.2});
  for (const double share : {0.05, 0.95})
    canvas.draw_line({x(share), centre_y - 5}, {x(share), centre_y + 5}, {kTextColour, 1.2});
  canvas.draw_rect({x(0.25), centre_y - half_height, std::max(x(0.75) - x(0.25), 1.0), 2 * half_height},
                   {distribution_row_colour(layer_distribution), 1, 2, distribution_row_label(layer_distribution)});
  canvas.draw_line({x(0.5), centre_y - half_height}, {x(0.5), centre_y + half_height}, {"#ffffff", 2});
  if (layer_distribution.mean_j < axes.x.high_value)
    canvas.draw_circle({axes.x.at(layer_distribution.mean_j), centre_y}, 2.6, {"#ffffff"}, {kTextColour, 1});
}

}  // namespace

Result<std::string> distributions_svg(const RunView& view, const PlotQuery& query) {
  std::vector<const LayerDistribution*> shown_distributions;
  for (const LayerDistribution& layer_distribution : view.layer_distributions) {
    if (layer_distribution.quantiles_j.size() < 2 ||
        !scopes::path_matches_filter(layer_distribution.path, layer_distribution.device, query.name_filter))
      continue;
    if (shown_distributions.size() < query.max_items.value_or(kDefaultDistributionLayers))
      shown_distributions.push_back(&layer_distribution);
  }
  if (shown_distributions.empty()) {
    return nothing_to_plot_error(fmt::format("no energy of {}s per step", plotted_distribution_level(query)),
                                 "mark steps with jm.step()");
  }
  const bool is_violin = query.plot == PlotKind::violin;
  const double height = kDistributionRowHeight_px * static_cast<double>(shown_distributions.size()) + 60;
  const std::string reference_unit = shown_distributions.front()->per;
  PlotFrame frame =
      make_plot_frame(view, find_level(view, plotted_distribution_level(query)),
                      fmt::format("Energy of {0}s per {1}", plotted_distribution_level(query), reference_unit), height);
  double highest = 0;
  for (const LayerDistribution* layer_distribution : shown_distributions)
    highest = std::max(highest, distribution_quantile(*layer_distribution, 0.99) * 1.03);
  const Rect plot_area{frame.plot_area.x + kDistributionNamesWidth_px, frame.plot_area.y + 8,
                       frame.plot_area.width - kDistributionNamesWidth_px - 16, height - 60};
  const PlotAxes axes{plot_area, {0, range_with_round_ends(0, highest, 6).high, plot_area.x, plot_area.right()}, {}};
  const std::string marker_legend =
      is_violin ? "bar: quartiles, dot: median" : "box: quartiles, whiskers: P5 and P95, dot: mean";
  draw_x_axis(frame.canvas, axes, fmt::format("joules per {}; {}", reference_unit, marker_legend), 6, true);
  for (std::size_t i = 0; i < shown_distributions.size(); ++i) {
    const double centre_y = plot_area.y + kDistributionRowHeight_px * (static_cast<double>(i) + 0.5);
    frame.canvas.draw_text(
        {plot_area.x - 10, centre_y + 4},
        shorten_to_width(distribution_row_label(*shown_distributions[i]), 12, kDistributionNamesWidth_px - 16),
        {12, kTextColour, TextAnchor::end});
    is_violin ? draw_violin(frame.canvas, axes, centre_y, *shown_distributions[i])
              : draw_box(frame.canvas, axes, centre_y, *shown_distributions[i]);
  }
  return std::move(frame.canvas).finish();
}

}  // namespace joulemap::report
