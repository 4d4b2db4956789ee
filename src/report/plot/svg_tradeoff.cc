// SPDX-License-Identifier: Apache-2.0
//
// A metric, such as accuracy, against energy: one numbered point per cell, and the Pareto front.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/amount_text.h"
#include "report/plot/experiment_plots.h"
#include "report/plot/svg_axes.h"
#include "report/plot/svg_cells.h"
#include "report/plot/svg_labels.h"
#include "report/plot/svg_theme.h"
#include "report/text/analysis_tables.h"

namespace joulemap::report {
namespace {

constexpr double kTradeoffPlotHeight_px = 430;
constexpr double kPointRadius_px = 5;
constexpr double kPointNumberFontSize_px = 11;
constexpr double kMinLogAxisRatio = 8;  // energies that differ more are on a logarithmic axis

struct TradeoffPoint {
  std::size_t cell = 0;
  double energy_j = 0;
  double metric_value = 0;
};

std::vector<TradeoffPoint> make_tradeoff_points(const AnalysisResult& result, std::size_t energy, std::size_t metric) {
  std::vector<TradeoffPoint> points;
  for (std::size_t i = 0; i < result.cells.size(); ++i) {
    const AnalysisCell& cell = result.cells[i];
    if (!cell.measures[energy] || !cell.measures[metric] || !(cell.measures[energy]->mean > 0)) continue;
    points.push_back({i, cell.measures[energy]->mean, cell.measures[metric]->mean});
  }
  return points;
}

// The cells that no cell with as little energy surpasses, in ascending order of energy.
std::vector<TradeoffPoint> pareto_front(std::vector<TradeoffPoint> points, bool more_is_better) {
  const double sign = more_is_better ? 1 : -1;
  std::ranges::sort(points, [&](const TradeoffPoint& a, const TradeoffPoint& b) {
    return std::pair(a.energy_j, -sign * a.metric_value) < std::pair(b.energy_j, -sign * b.metric_value);
  });
  std::vector<TradeoffPoint> front;
  for (const TradeoffPoint& point : points) {
    if (front.empty() || sign * point.metric_value > sign * front.back().metric_value) front.push_back(point);
  }
  return front;
}

// Cells of one combination of the factors that are not compared: only these are alternatives to each other.
std::map<std::vector<std::size_t>, std::vector<TradeoffPoint>> group_comparable_cells(
    const AnalysisResult& result, const std::vector<TradeoffPoint>& points) {
  std::map<std::vector<std::size_t>, std::vector<TradeoffPoint>> groups;
  for (const TradeoffPoint& point : points) {
    std::vector<std::size_t> key;
    for (std::size_t i = 0; i < result.factors.size(); ++i) {
      if (!result.factors[i].is_compared) key.push_back(result.cells[point.cell].levels[i]);
    }
    groups[key].push_back(point);
  }
  return groups;
}

struct TradeoffAxes {
  PlotAxes axes;
  bool is_logarithmic = false;
  double energy_unit_factor = 1;

  Point at(const TradeoffPoint& point) const {
    const double energy = point.energy_j / energy_unit_factor;
    return {axes.x.at(is_logarithmic ? std::log10(energy) : energy), axes.y.at(point.metric_value)};
  }
};

// A scale with some room on both sides.
AxisScale make_padded_scale(double low, double high, double start_px, double end_px) {
  const double margin = high > low ? 0.06 * (high - low) : std::max(0.05 * std::abs(high), 1e-9);
  return {low - margin, high + margin, start_px, end_px};
}

TradeoffAxes make_tradeoff_axes(const std::vector<TradeoffPoint>& points, const Rect& plot_area, double energy_factor) {
  const auto [min_energy_point, max_energy_point] = std::ranges::minmax(points, {}, &TradeoffPoint::energy_j);
  const auto [min_metric_point, max_metric_point] = std::ranges::minmax(points, {}, &TradeoffPoint::metric_value);
  TradeoffAxes axes;
  axes.energy_unit_factor = energy_factor;
  axes.is_logarithmic = max_energy_point.energy_j > kMinLogAxisRatio * min_energy_point.energy_j;
  double low = min_energy_point.energy_j / energy_factor;
  double high = max_energy_point.energy_j / energy_factor;
  if (axes.is_logarithmic) {
    low = std::log10(low);
    high = std::log10(high);
  }
  axes.axes = {
      plot_area, make_padded_scale(low, high, plot_area.x, plot_area.right()),
      make_padded_scale(min_metric_point.metric_value, max_metric_point.metric_value, plot_area.bottom(), plot_area.y)};
  return axes;
}

void draw_log_energy_axis(SvgCanvas& canvas, const PlotAxes& axes, std::string_view unit) {
  for (const double tick : logarithmic_ticks(axes.x)) {
    const double x = axes.x.at(tick);
    canvas.draw_line({x, axes.plot_area.y}, {x, axes.plot_area.bottom()}, {kGridColour, 1});
    canvas.draw_text({x, axes.plot_area.bottom() + 18}, fmt::format("{:.4g}", std::pow(10, tick)),
                     {12, kMutedTextColour, TextAnchor::middle});
  }
  canvas.draw_text({axes.plot_area.x + axes.plot_area.width / 2, axes.plot_area.bottom() + 36},
                   fmt::format("energy in {}, logarithmic", unit), {12, kMutedTextColour, TextAnchor::middle});
}

// A stair: each cell of the front is the best for energies up to the next one.
void draw_pareto_front(SvgCanvas& canvas, const TradeoffAxes& axes, const std::vector<TradeoffPoint>& front) {
  if (front.size() < 2) return;
  std::vector<Point> pareto_steps;
  for (const TradeoffPoint& point : front) {
    const Point position = axes.at(point);
    if (!pareto_steps.empty()) pareto_steps.push_back({position.x, pareto_steps.back().y});
    pareto_steps.push_back(position);
  }
  canvas.draw_polyline(pareto_steps, {kTextColour, 1.4, "5 3"});
}

std::string tradeoff_entry_text(const AnalysisResult& result, const TradeoffPoint& point, const Measure& metric) {
  const std::string unit = metric.unit.empty() ? "" : " " + metric.unit;
  return fmt::format("{}: {}, {:.4g}{}", short_levels_text(result, result.cells[point.cell].levels),
                     amount_text(point.energy_j, "J"), point.metric_value, unit);
}

}  // namespace

std::optional<std::size_t> tradeoff_metric(const AnalysisResult& result) {
  std::optional<std::size_t> metric;
  for (std::size_t i = 0; i < result.measures.size(); ++i) {
    if (result.measures[i].kind != MeasureKind::metric || !result.measures[i].is_compared) continue;
    if (!metric || result.measures[i].name == "accuracy") metric = i;
  }
  return metric;
}

std::string tradeoff_svg(const AnalysisResult& result) {
  const std::optional<std::size_t> energy = find_measure_of_kind(result, MeasureKind::energy);
  const std::optional<std::size_t> metric = tradeoff_metric(result);
  if (!energy || !metric) return "";
  const Measure& measure = result.measures[*metric];
  const std::vector<TradeoffPoint> points = make_tradeoff_points(result, *energy, *metric);
  if (points.empty()) return "";
  const FactorRoles roles = assign_factor_roles(result);
  std::vector<ListEntry> list;
  for (const TradeoffPoint& point : points)
    list.push_back({tradeoff_entry_text(result, point, measure), cell_colour(roles, result.cells[point.cell])});
  const double list_width = kPlotWidth_px - 2 * kPlotMargin_px;
  const double max_energy_j = std::ranges::max(points, {}, &TradeoffPoint::energy_j).energy_j;
  const AxisUnit unit = choose_axis_unit(result.measures[*energy], max_energy_j);
  SvgCanvas canvas =
      make_titled_canvas(kPlotTop_px + kTradeoffPlotHeight_px + 68 + numbered_list_height(list, list_width),
                         fmt::format("{} against energy; rim and dashed line: Pareto front", measure.name),
                         "one point per cell, numbered");
  draw_hue_legend(canvas, result, roles);
  const Rect plot_area{kPlotMargin_px + 50, kPlotTop_px + 12, kPlotWidth_px - 2 * kPlotMargin_px - 60,
                       kTradeoffPlotHeight_px};
  const TradeoffAxes axes = make_tradeoff_axes(points, plot_area, unit.unit_factor);
  draw_y_axis(canvas, axes.axes, measure.unit.empty() ? measure.name : measure.name + ", " + measure.unit);
  if (axes.is_logarithmic) {
    draw_log_energy_axis(canvas, axes.axes, unit.unit_text);
  } else {
    draw_x_axis(canvas, axes.axes, "energy in " + unit.unit_text, 8, true);
  }
  std::vector<bool> is_on_front(result.cells.size(), false);
  for (const auto& [key, group] : group_comparable_cells(result, points)) {
    const std::vector<TradeoffPoint> front = pareto_front(group, measure.more_is_better);
    for (const TradeoffPoint& point : front) is_on_front[point.cell] = true;
    draw_pareto_front(canvas, axes, front);
  }
  std::vector<LabelledPoint> labels;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool is_on_pareto_front = is_on_front[points[i].cell];
    canvas.draw_circle(axes.at(points[i]), kPointRadius_px, {list[i].colour, 0.85, 0, list[i].text},
                       {is_on_pareto_front ? kTextColour : "#ffffff", is_on_pareto_front ? 1.8 : 0.8});
    labels.push_back({axes.at(points[i]), kPointRadius_px + 1, fmt::format("{}", i + 1), is_on_pareto_front});
  }
  draw_labels(canvas, labels, kPointNumberFontSize_px, plot_area);
  draw_numbered_list(canvas, {kPlotMargin_px, plot_area.bottom() + 52}, list_width, list);
  return std::move(canvas).finish();
}

}  // namespace joulemap::report
