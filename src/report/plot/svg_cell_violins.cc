// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/plot/experiment_plots.h"
#include "report/plot/svg_axes.h"
#include "report/plot/svg_cells.h"
#include "report/plot/svg_theme.h"

namespace joulemap::report {
namespace {

constexpr double kViolinRowHeight_px = 26;
constexpr double kViolinNamesWidth_px = 250;
constexpr int kDensityPointCount = 60;
constexpr double kMaxAxisDeviation_percent = 60;  // limit of the axis; values beyond it are drawn at its end

struct ViolinRow {
  std::string name;
  std::string_view colour;
  std::vector<double> deviations_percent;  // deviations of the rows from the median of the cell, in percent
};

double sample_standard_deviation(const std::vector<double>& values) {
  double sum = 0;
  double squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  const auto n = static_cast<double>(values.size());
  return n > 1 ? std::sqrt(std::max(squares - sum * sum / n, 0.0) / (n - 1)) : 0;
}

// Gaussian kernel density estimate with the normal-reference bandwidth, which is at least about 2 px. None for fewer
// than three rows.
void draw_density(SvgCanvas& canvas, const PlotAxes& axes, double centre_y, const ViolinRow& line) {
  if (line.deviations_percent.size() < 3) return;
  const double min_bandwidth = (axes.x.high_value - axes.x.low_value) / 300;
  const double width = std::max(1.06 * sample_standard_deviation(line.deviations_percent) *
                                    std::pow(static_cast<double>(line.deviations_percent.size()), -0.2),
                                min_bandwidth);
  const auto [low, high] = std::minmax_element(line.deviations_percent.begin(), line.deviations_percent.end());
  std::vector<Point> upper_curve;
  double highest = 0;
  for (int i = 0; i <= kDensityPointCount; ++i) {
    const double axis_value = *low - 2 * width + (*high - *low + 4 * width) * i / kDensityPointCount;
    double sum = 0;
    for (const double deviation_percent : line.deviations_percent)
      sum += std::exp(-0.5 * (axis_value - deviation_percent) * (axis_value - deviation_percent) / (width * width));
    upper_curve.push_back({axis_value, sum});
    highest = std::max(highest, sum);
  }
  std::vector<Point> outline;
  const auto x = [&](double value) { return axes.x.at(std::clamp(value, axes.x.low_value, axes.x.high_value)); };
  const double half_height = kViolinRowHeight_px / 2 - 3;
  for (const Point& point : upper_curve) outline.push_back({x(point.x), centre_y - half_height * point.y / highest});
  for (auto point = upper_curve.rbegin(); point != upper_curve.rend(); ++point) {
    outline.push_back({x(point->x), centre_y + half_height * point->y / highest});
  }
  canvas.draw_polygon(outline, {line.colour, 0.35, 0, line.name});
}

}  // namespace

std::string cell_violins_svg(const AnalysisResult& result, std::size_t measure) {
  const FactorRoles roles = assign_factor_roles(result);
  std::vector<ViolinRow> lines;
  double max_deviation_percent = 1;
  for (const AnalysisCell& cell : result.cells) {
    const std::optional<MeasureSummary>& summary = cell.measures[measure];
    if (!summary || summary->median == 0 || summary->values.size() < 2) continue;
    ViolinRow line{cell_label_without_hue(result, roles, cell), cell_colour(roles, cell), {}};
    for (const double value : summary->values) line.deviations_percent.push_back(100 * (value / summary->median - 1));
    for (const double percent : line.deviations_percent)
      max_deviation_percent = std::max(max_deviation_percent, std::abs(percent));
    lines.push_back(std::move(line));
  }
  if (lines.empty()) return "";
  max_deviation_percent = std::min(range_with_round_ends(0, max_deviation_percent, 4).high, kMaxAxisDeviation_percent);
  const double height = kViolinRowHeight_px * static_cast<double>(lines.size());
  SvgCanvas canvas =
      make_titled_canvas(kPlotTop_px + height + 60,
                         fmt::format("{}: rows, in percent of the median of their cell", result.measures[measure].name),
                         "dots and their density, one line per cell");
  draw_hue_legend(canvas, result, roles);
  const Rect plot_area{kPlotMargin_px + kViolinNamesWidth_px, kPlotTop_px + 8,
                       kPlotWidth_px - 2 * kPlotMargin_px - kViolinNamesWidth_px - 10, height};
  const PlotAxes axes{plot_area, {-max_deviation_percent, max_deviation_percent, plot_area.x, plot_area.right()}, {}};
  draw_x_axis(canvas, axes,
              fmt::format("% from the median; values beyond {:.0f} % are at the edge", max_deviation_percent), 8, true);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double centre_y = plot_area.y + kViolinRowHeight_px * (static_cast<double>(i) + 0.5);
    canvas.draw_text({plot_area.x - 10, centre_y + 4}, shorten_to_width(lines[i].name, 12, kViolinNamesWidth_px - 14),
                     {12, kTextColour, TextAnchor::end});
    draw_density(canvas, axes, centre_y, lines[i]);
    for (const double percent : lines[i].deviations_percent) {
      canvas.draw_circle({axes.x.at(std::clamp(percent, -max_deviation_percent, max_deviation_percent)), centre_y}, 2.4,
                         {lines[i].colour, 0.9});
    }
  }
  return std::move(canvas).finish();
}

}  // namespace joulemap::report
