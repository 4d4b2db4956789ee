// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/amount_text.h"
#include "report/plot/experiment_plots.h"
#include "report/plot/svg_axes.h"
#include "report/plot/svg_cells.h"
#include "report/plot/svg_labels.h"
#include "report/plot/svg_theme.h"
#include "report/text/analysis_tables.h"

namespace joulemap::report {
namespace {

constexpr double kBubblePlotHeight_px = 420;
constexpr double kMinBubbleRadius_px = 6;
constexpr double kMaxBubbleRadius_px = 20;
constexpr double kMaxRadiusOfManyBubbles_px =
    11;  // radius if there are more than kMaxFullSizeBubbles, which would cover each other
constexpr std::size_t kMaxFullSizeBubbles = 12;
constexpr double kAxisMargin_decades = 0.08;  // decades beside the outermost bubbles
constexpr double kBubbleNumberFontSize_px = 11;
constexpr double kNumberClearance_px = 5;  // what numbers keep free of a bubble: large bubbles may be covered

struct Bubble {
  std::size_t cell = 0;
  double time_s = 0;
  double energy_j = 0;
  std::optional<double> metric_value;
};

std::set<std::size_t> cells_on_pareto_front(const AnalysisResult& result) {
  std::set<std::size_t> front_cells;
  for (const ParetoSet& set : result.pareto) {
    for (const ParetoPoint& point : set.points) {
      if (point.is_on_front) front_cells.insert(point.cell);
    }
  }
  return front_cells;
}

// Draws grid lines and labels. The scales map log10 of a value.
void draw_log_axes(SvgCanvas& canvas, const Rect& plot_area, const AxisScale& x, const AxisScale& y) {
  for (const AxisScale* scale : {&x, &y}) {
    for (const double power : logarithmic_ticks(*scale)) {
      const double tick_position = scale->at(power);
      if (scale == &x) {
        canvas.draw_line({tick_position, plot_area.y}, {tick_position, plot_area.bottom()}, {kGridColour, 1});
        canvas.draw_text({tick_position, plot_area.bottom() + 18}, amount_text(std::pow(10, power), "s"),
                         {12, kMutedTextColour, TextAnchor::middle});
      } else {
        canvas.draw_line({plot_area.x, tick_position}, {plot_area.right(), tick_position}, {kGridColour, 1});
        canvas.draw_text({plot_area.x - 8, tick_position + 4}, amount_text(std::pow(10, power), "J"),
                         {12, kMutedTextColour, TextAnchor::end});
      }
    }
  }
  canvas.draw_text({plot_area.x + plot_area.width / 2, plot_area.bottom() + 38}, "time, logarithmic",
                   {12, kMutedTextColour, TextAnchor::middle});
  canvas.draw_text({14, plot_area.y + plot_area.height / 2}, "energy, logarithmic",
                   {12, kMutedTextColour, TextAnchor::middle, false, -90});
}

AxisScale make_log_scale(const std::vector<double>& values, double start_px, double end_px) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {std::log10(*low) - kAxisMargin_decades, std::log10(*high) + kAxisMargin_decades, start_px, end_px};
}

std::vector<Bubble> make_bubbles(const AnalysisResult& result, std::optional<std::size_t> metric) {
  const std::optional<std::size_t> energy = find_measure_of_kind(result, MeasureKind::energy);
  const std::optional<std::size_t> time = find_measure_of_kind(result, MeasureKind::time);
  std::vector<Bubble> bubbles;
  if (!energy || !time) return bubbles;
  for (std::size_t i = 0; i < result.cells.size(); ++i) {
    const AnalysisCell& cell = result.cells[i];
    if (!cell.measures[*energy] || !cell.measures[*time]) continue;
    Bubble bubble{i, cell.measures[*time]->mean, cell.measures[*energy]->mean, {}};
    if (metric && cell.measures[*metric]) bubble.metric_value = cell.measures[*metric]->mean;
    if (bubble.time_s > 0 && bubble.energy_j > 0) bubbles.push_back(bubble);
  }
  return bubbles;
}

}  // namespace

std::string bubbles_svg(const AnalysisResult& result) {
  std::optional<std::size_t> metric;
  for (std::size_t i = 0; i < result.measures.size(); ++i) {
    if (result.measures[i].kind != MeasureKind::metric || !result.measures[i].is_compared) continue;
    if (!metric || result.measures[i].name == "accuracy") metric = i;
  }
  const std::vector<Bubble> bubbles = make_bubbles(result, metric);
  if (bubbles.empty()) return "";
  std::vector<double> times;
  std::vector<double> energies;
  double min_metric = 0;
  double max_metric = 0;
  for (const Bubble& bubble : bubbles) {
    times.push_back(bubble.time_s);
    energies.push_back(bubble.energy_j);
    if (bubble.metric_value)
      min_metric =
          max_metric == 0 && min_metric == 0 ? *bubble.metric_value : std::min(min_metric, *bubble.metric_value);
    if (bubble.metric_value) max_metric = std::max(max_metric, *bubble.metric_value);
  }
  const std::string title =
      metric ? fmt::format("Energy and time; size: {}, rim: on the Pareto front", result.measures[*metric].name)
             : "Energy and time; rim: on the Pareto front";
  const FactorRoles roles = assign_factor_roles(result);
  std::vector<ListEntry> list;
  for (const Bubble& bubble : bubbles) {
    const AnalysisCell& cell = result.cells[bubble.cell];
    list.push_back({fmt::format("{}: {}, {}", short_levels_text(result, cell.levels), amount_text(bubble.energy_j, "J"),
                                amount_text(bubble.time_s, "s")),
                    cell_colour(roles, cell)});
  }
  const double list_width = kPlotWidth_px - 2 * kPlotMargin_px;
  SvgCanvas canvas =
      make_titled_canvas(kPlotTop_px + kBubblePlotHeight_px + 66 + numbered_list_height(list, list_width), title,
                         "one bubble per cell, numbered");
  draw_hue_legend(canvas, result, roles);
  const Rect plot_area{kPlotMargin_px + 70, kPlotTop_px + 10, kPlotWidth_px - 2 * kPlotMargin_px - 90,
                       kBubblePlotHeight_px};
  const AxisScale x = make_log_scale(times, plot_area.x, plot_area.right());
  const AxisScale y = make_log_scale(energies, plot_area.bottom(), plot_area.y);
  draw_log_axes(canvas, plot_area, x, y);
  const std::set<std::size_t> front_cells = cells_on_pareto_front(result);
  std::vector<LabelledPoint> labels;
  for (std::size_t i = 0; i < bubbles.size(); ++i) {
    const Bubble& bubble = bubbles[i];
    const double share = bubble.metric_value && max_metric > min_metric
                             ? (*bubble.metric_value - min_metric) / (max_metric - min_metric)
                             : 0.3;
    const bool is_on_front = front_cells.contains(bubble.cell);
    const Point centre{x.at(std::log10(bubble.time_s)), y.at(std::log10(bubble.energy_j))};
    const double radius =
        kMinBubbleRadius_px +
        share * ((bubbles.size() > kMaxFullSizeBubbles ? kMaxRadiusOfManyBubbles_px : kMaxBubbleRadius_px) -
                 kMinBubbleRadius_px);
    canvas.draw_circle(centre, radius, {list[i].colour, 0.6, 0, list[i].text},
                       {is_on_front ? kTextColour : "none", is_on_front ? 1.6 : 0.0});
    labels.push_back({centre, kNumberClearance_px, fmt::format("{}", i + 1)});
  }
  draw_labels(canvas, labels, kBubbleNumberFontSize_px, plot_area);
  draw_numbered_list(canvas, {kPlotMargin_px, plot_area.bottom() + 50}, list_width, list);
  return std::move(canvas).finish();
}

}  // namespace joulemap::report
