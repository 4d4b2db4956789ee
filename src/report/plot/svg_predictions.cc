// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "base/amount_text.h"
#include "report/plot/prediction_plots.h"
#include "report/plot/svg_axes.h"
#include "report/plot/svg_cells.h"
#include "report/plot/svg_frame.h"
#include "report/plot/svg_theme.h"

namespace joulemap::report {
namespace {

constexpr double kScatterHeight_px = 460;
constexpr double kKindBarHeight_px = 22;
constexpr double kKindNameWidth_px = 130;
constexpr double kAxisFontSize_px = 12;
constexpr std::size_t kMaxPlottedOperations = 2500;
constexpr std::size_t kMaxColouredKinds = 6;  // the kinds with the most cases; all others share a colour

// A value on a logarithmic axis with 6 % room on both sides.
struct LogRange {
  double low = INFINITY;
  double high = -INFINITY;

  void extend(double value) {
    if (!(value > 0) || !std::isfinite(value)) return;
    low = std::min(low, std::log10(value));
    high = std::max(high, std::log10(value));
  }
  bool is_empty() const { return low > high; }
  AxisScale make_scale(double from_pixel, double to_pixel) const {
    const double margin = std::max(0.06 * (high - low), 0.05);
    return {low - margin, high + margin, from_pixel, to_pixel};
  }
};

void draw_log_axis_x(SvgCanvas& canvas, const PlotAxes& axes, std::string_view title) {
  for (const double tick : logarithmic_ticks(axes.x)) {
    const double x = axes.x.at(tick);
    canvas.draw_line({x, axes.plot_area.y}, {x, axes.plot_area.bottom()}, {kGridColour, 1});
    canvas.draw_text({x, axes.plot_area.bottom() + 18}, fmt::format("{:.4g}", std::pow(10, tick)),
                     {kAxisFontSize_px, kMutedTextColour, TextAnchor::middle});
  }
  canvas.draw_text({axes.plot_area.x + axes.plot_area.width / 2, axes.plot_area.bottom() + 38}, title,
                   {kAxisFontSize_px, kMutedTextColour, TextAnchor::middle});
}

void draw_log_axis_y(SvgCanvas& canvas, const PlotAxes& axes, std::string_view title) {
  for (const double tick : logarithmic_ticks(axes.y)) {
    const double y = axes.y.at(tick);
    canvas.draw_line({axes.plot_area.x, y}, {axes.plot_area.right(), y}, {kGridColour, 1});
    canvas.draw_text({axes.plot_area.x - 8, y + 4}, fmt::format("{:.4g}", std::pow(10, tick)),
                     {kAxisFontSize_px, kMutedTextColour, TextAnchor::end});
  }
  canvas.draw_text({kPlotMargin_px - 8, axes.plot_area.y + axes.plot_area.height / 2}, title,
                   {kAxisFontSize_px, kMutedTextColour, TextAnchor::middle, false, -90});
}

struct ScatterPoint {
  double x = 0;
  double y = 0;
  double low = 0;  // interval of y; 0: none
  double high = 0;
  std::string_view colour;
  std::string tooltip;
};

Rect scatter_area(double top_px) {
  return {kPlotMargin_px + 52, top_px, kPlotWidth_px - 2 * kPlotMargin_px - 60, kScatterHeight_px};
}

// Scatter plot on logarithmic axes with the line y = x, if `has_diagonal`.
std::string scatter_svg(std::string_view title, std::string_view x_title, std::string_view y_title,
                        std::span<const ScatterPoint> points, const std::vector<LegendEntry>& legend,
                        bool has_diagonal) {
  LogRange x_range;
  LogRange y_range;
  for (const ScatterPoint& point : points) {
    x_range.extend(point.x);
    for (const double value : {point.low, point.y, point.high}) y_range.extend(value);
  }
  if (x_range.is_empty() || y_range.is_empty()) return {};
  SvgCanvas canvas = make_titled_canvas(kPlotTop_px + 30 + kScatterHeight_px + 60, title, y_title);
  const double legend_px = draw_legend(canvas, {kPlotMargin_px, 40}, kPlotWidth_px - 2 * kPlotMargin_px, legend);
  const Rect area = scatter_area(46 + legend_px);
  const PlotAxes axes{area, x_range.make_scale(area.x, area.right()), y_range.make_scale(area.bottom(), area.y)};
  draw_log_axis_x(canvas, axes, x_title);
  draw_log_axis_y(canvas, axes, y_title);
  if (has_diagonal) {
    const double low = std::max(axes.x.low_value, axes.y.low_value);
    const double high = std::min(axes.x.high_value, axes.y.high_value);
    if (low < high)
      canvas.draw_line({axes.x.at(low), axes.y.at(low)}, {axes.x.at(high), axes.y.at(high)}, {kAxisColour, 1.2, "5 3"});
  }
  for (const ScatterPoint& point : points) {
    if (!(point.x > 0 && point.y > 0)) continue;
    const Point position{axes.x.at(std::log10(point.x)), axes.y.at(std::log10(point.y))};
    const auto clamp_y = [&area](double y) { return std::clamp(y, area.y, area.bottom()); };
    if (point.low > 0 && point.high > 0)
      canvas.draw_line({position.x, clamp_y(axes.y.at(std::log10(point.low)))},
                       {position.x, clamp_y(axes.y.at(std::log10(point.high)))}, {point.colour, 0.7});
    canvas.draw_circle(position, 3, {point.colour, 0.7, 0, point.tooltip});
  }
  return std::move(canvas).finish();
}

std::vector<LegendEntry> pass_legend() { return {{"inference", palette_colour(0)}, {"training", palette_colour(1)}}; }

std::map<std::string, std::vector<double>, std::less<>> error_ratios_by_kind(
    std::span<const predict::OperationCase> cases) {
  std::map<std::string, std::vector<double>, std::less<>> ratios;
  for (const predict::OperationCase& operation_case : cases) {
    if (operation_case.measured > 0 && operation_case.predicted > 0)
      ratios[operation_case.kind].push_back(operation_case.predicted / operation_case.measured);
  }
  return ratios;
}

// Colours of the most frequent kinds, with the others in the muted colour, and their legend.
struct KindColours {
  std::map<std::string, std::string_view, std::less<>> by_kind;
  std::vector<LegendEntry> legend;

  std::string_view colour(std::string_view kind) const {
    const auto colour_entry = by_kind.find(kind);
    return colour_entry == by_kind.end() ? kUnattributedColour : colour_entry->second;
  }
};

KindColours choose_kind_colours(std::span<const predict::OperationCase> cases) {
  std::map<std::string, std::size_t, std::less<>> counts;
  for (const predict::OperationCase& operation_case : cases) ++counts[operation_case.kind];
  std::vector<std::pair<std::size_t, std::string>> sorted_kinds;
  for (const auto& [kind, count] : counts) sorted_kinds.emplace_back(count, kind);
  std::ranges::sort(sorted_kinds, std::greater<>());
  KindColours colours;
  for (std::size_t i = 0; i < std::min(kMaxColouredKinds, sorted_kinds.size()); ++i) {
    colours.by_kind[sorted_kinds[i].second] = palette_colour(i);
    colours.legend.push_back({sorted_kinds[i].second, palette_colour(i)});
  }
  if (sorted_kinds.size() > kMaxColouredKinds) colours.legend.push_back({"other kinds", kUnattributedColour});
  return colours;
}

}  // namespace

std::string predicted_networks_svg(std::span<const predict::NetworkCase> cases) {
  std::vector<ScatterPoint> points;
  for (const predict::NetworkCase& network_case : cases) {
    points.push_back(
        {network_case.measured_j, network_case.predicted_j, network_case.low_j, network_case.high_j,
         palette_colour(network_case.training ? 1 : 0),
         fmt::format("{}: measured {}, predicted {}", network_case.setting, amount_text(network_case.measured_j, "J"),
                     amount_text(network_case.predicted_j, "J"))});
  }
  return scatter_svg("Energy of networks, predicted without their family", "measured energy of a step in J",
                     "predicted energy of a step in J", points, pass_legend(), true);
}

std::string predicted_operations_svg(std::span<const predict::OperationCase> cases) {
  const KindColours colours = choose_kind_colours(cases);
  std::vector<ScatterPoint> points;
  const std::size_t stride = (cases.size() + kMaxPlottedOperations - 1) / kMaxPlottedOperations;
  for (std::size_t i = 0; i < cases.size(); i += stride) {
    const predict::OperationCase& operation_case = cases[i];
    points.push_back({operation_case.measured, operation_case.predicted, 0, 0, colours.colour(operation_case.kind),
                      operation_case.key});
  }
  return scatter_svg(
      fmt::format("Energy of operations, predicted without them ({} of {})", points.size(), cases.size()),
      "measured energy in J", "predicted energy in J", points, colours.legend, true);
}

std::string errors_by_kind_svg(std::span<const predict::OperationCase> cases, std::string_view title) {
  const auto ratios = error_ratios_by_kind(cases);
  if (ratios.empty()) return {};
  LogRange range;
  range.extend(1);
  for (const auto& [kind, values] : ratios) {
    range.extend(predict::quantile(values, 0.1));
    range.extend(predict::quantile(values, 0.9));
  }
  const double height = kKindBarHeight_px * static_cast<double>(ratios.size());
  SvgCanvas canvas = make_titled_canvas(kPlotTop_px + height + 60, title, "one bar per kind of operation");
  const Rect area{kPlotMargin_px + kKindNameWidth_px, kPlotTop_px,
                  kPlotWidth_px - 2 * kPlotMargin_px - kKindNameWidth_px - 80, height};
  const PlotAxes axes{area, range.make_scale(area.x, area.right()), {}};
  draw_log_axis_x(canvas, axes, "predicted / measured: from P10 to P90, line: median");
  canvas.draw_line({axes.x.at(0), area.y}, {axes.x.at(0), area.bottom()}, {kAxisColour, 1.2});
  double y = area.y;
  for (const auto& [kind, values] : ratios) {
    const double low = axes.x.at(std::log10(predict::quantile(values, 0.1)));
    const double high = axes.x.at(std::log10(predict::quantile(values, 0.9)));
    const double median = axes.x.at(std::log10(predict::quantile(values, 0.5)));
    canvas.draw_text({area.x - 8, y + 15}, kind, {kAxisFontSize_px, kTextColour, TextAnchor::end});
    canvas.draw_rect({low, y + 5, std::max(high - low, 1.0), kKindBarHeight_px - 10}, {palette_colour(0), 0.55, 2});
    canvas.draw_line({median, y + 3}, {median, y + kKindBarHeight_px - 3}, {kTextColour, 1.6});
    canvas.draw_text({area.right() + 8, y + 15}, fmt::format("n = {}", values.size()),
                     {kAxisFontSize_px, kMutedTextColour});
    y += kKindBarHeight_px;
  }
  return std::move(canvas).finish();
}

std::string additivity_svg(std::span<const predict::NetworkCase> cases) {
  std::vector<ScatterPoint> points;
  for (const predict::NetworkCase& network_case : cases) {
    if (!(network_case.operations_j > 0)) continue;
    points.push_back({network_case.measured_j, network_case.additivity_factor(), 0, 0,
                      palette_colour(network_case.training ? 1 : 0),
                      fmt::format("{}: {:.2f}", network_case.setting, network_case.additivity_factor())});
  }
  return scatter_svg("Additivity factor: energy of a network / energy of its operations alone",
                     "measured energy of a step in J", "additivity factor", points, pass_legend(), false);
}

}  // namespace joulemap::report
