// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/background_row.h"
#include "report/plot/plots.h"
#include "report/plot/svg_axes.h"
#include "report/plot/svg_frame.h"
#include "report/plot/svg_theme.h"
#include "report/text/energy_rows.h"
#include "report/text/energy_tree.h"
#include "report/text/kernel_names.h"
#include "report/text/text_style.h"
#include "scopes/path_tree.h"

namespace joulemap::report {
namespace {

constexpr double kBarRowHeight_px = 24;
constexpr double kBarNamesWidth_px = 300;
constexpr std::size_t kDefaultBarCount = 20;

// What bars show.
struct PlottedQuantity {
  std::string_view title;
  std::string_view unit;
  std::string_view axis_title;
};

PlottedQuantity plotted_quantity(std::optional<SortBy> sort) {
  switch (sort.value_or(SortBy::energy)) {
    case SortBy::power:
      return {"Mean power", "W", "watts while the row ran; whiskers: 90 % interval"};
    case SortBy::time:
      return {"Time", "s", "seconds"};
    case SortBy::count:
      return {"Calls", "", "calls or kernels"};
    default:
      return {"Energy", "J", "joules; whiskers: 90 % interval; cut bars extend beyond the axis"};
  }
}

struct ValueWithInterval {
  double value = 0;
  std::optional<double> low = {};
  std::optional<double> high = {};
};

struct Bar {
  std::string name;
  ValueWithInterval value;
  std::string attribution_basis;
  std::string_view colour;
};

// None if the row does not have the quantity.
std::optional<ValueWithInterval> quantity_of_row(const ReportRow& row, std::optional<SortBy> sort) {
  switch (sort.value_or(SortBy::energy)) {
    case SortBy::power:
      if (!row.energy_j || row.time_s <= 0) return std::nullopt;
      return ValueWithInterval{*row.energy_j / row.time_s,
                               row.low_j ? std::optional(*row.low_j / row.time_s) : std::nullopt,
                               row.high_j ? std::optional(*row.high_j / row.time_s) : std::nullopt};
    case SortBy::time:
      return ValueWithInterval{row.time_s};
    case SortBy::count:
      return row.count ? std::optional(ValueWithInterval{static_cast<double>(*row.count)}) : std::nullopt;
    default:
      return row.energy_j ? std::optional(ValueWithInterval{*row.energy_j, row.low_j, row.high_j}) : std::nullopt;
  }
}

std::string bar_name(const ReportRow& row, std::string_view level_name, bool shows_device) {
  const std::string device = shows_device && !row.device.empty() ? row.device + " " : "";
  if (level_name == "kernel") return device + brief_kernel_name(row.display_name, 46);
  std::string name = device;
  for (std::size_t i = 0; i < row.path.size(); ++i) name += (i > 0 ? " " : "") + row.path[i];
  return name;
}

bool is_energy_plotted(const PlotQuery& query) {
  return !query.sort_by || query.sort_by == SortBy::energy || query.sort_by == SortBy::name;
}

// All rows that have the quantity, in the order of the query. Without probing, which the footer shows.
std::vector<Bar> make_bars_of_rows(const ReportResult& result, const PlotQuery& query) {
  std::set<std::string> devices;
  std::vector<const ReportRow*> rows;
  for (const ReportRow& row : result.rows) {
    if (!scopes::path_matches_filter(row.path, row.device, query.name_filter) || !quantity_of_row(row, query.sort_by))
      continue;
    rows.push_back(&row);
    devices.insert(row.device);
  }
  std::vector<Bar> bars;
  for (const ReportRow* row : rows) {
    bars.push_back({bar_name(*row, result.by, devices.size() > 1), *quantity_of_row(*row, query.sort_by), row->basis,
                    colour_of_attribution_basis(row->basis)});
  }
  if (query.sort_by == SortBy::name) {
    std::ranges::stable_sort(bars, {}, &Bar::name);
  } else if (!is_energy_plotted(query) || (result.probe && !has_step_or_epoch_rows(result))) {
    // Rows are ordered by their energies with probing; steps and epochs by time.
    std::ranges::stable_sort(bars, std::greater(), [](const Bar& bar) { return bar.value.value; });
  }
  return bars;
}

std::vector<Bar> make_bars(const RunView& view, const LevelView& level, const PlotQuery& query) {
  const ReportResult result = make_level_report(view, level);
  std::vector<Bar> bars = make_bars_of_rows(exclude_probing(result), query);
  const std::size_t shown_bar_count = std::min(query.max_items.value_or(kDefaultBarCount), bars.size());
  Bar remainder_bar{fmt::format("{} more", bars.size() - shown_bar_count), {}, {}, kUnattributedColour};
  for (std::size_t i = shown_bar_count; i < bars.size(); ++i) remainder_bar.value.value += bars[i].value.value;
  const bool has_remaining_rows =
      shown_bar_count < bars.size() && query.sort_by != SortBy::power;  // powers do not add up
  bars.resize(shown_bar_count);
  if (has_remaining_rows) bars.push_back(remainder_bar);
  if (!query.name_filter.empty() || !is_energy_plotted(query)) return bars;
  for (const EnergyNode& node : idle_and_unattributed_without_probing(result)) {
    if (node.summed_row.energy_j.value_or(0) > 0)
      bars.push_back({node.name, *quantity_of_row(node.summed_row, {}), node.summed_row.basis, kUnattributedColour});
  }
  return bars;
}

// Draws two white lines across a bar, to show that it extends beyond the axis.
void draw_axis_break(const Rect& rect, SvgCanvas& canvas) {
  for (const double shift : {0.0, 7.0}) {
    canvas.draw_line({rect.x + shift, rect.bottom() + 2}, {rect.x + shift + rect.width, rect.y - 2}, {"#ffffff", 3});
  }
}

void draw_bar(SvgCanvas& canvas, const PlotAxes& axes, double y, const Bar& bar, std::string_view unit) {
  const double centre_y = y + kBarRowHeight_px / 2;
  const bool is_beyond_axis = bar.value.value > axes.x.high_value;
  const double end = is_beyond_axis ? axes.plot_area.right() : axes.x.at(bar.value.value);
  const std::string suffix = unit.empty() ? "" : fmt::format(" {}", unit);
  canvas.draw_text({axes.plot_area.x - 10, centre_y + 4}, shorten_to_width(bar.name, 12, kBarNamesWidth_px - 16),
                   {12, kTextColour, TextAnchor::end});
  const std::string title =
      fmt::format("{}: {}{}{}", bar.name, format_number(bar.value.value), suffix,
                  bar.attribution_basis.empty() ? "" : fmt::format(" ({})", bar.attribution_basis));
  canvas.draw_rect({axes.plot_area.x, y + 4, std::max(end - axes.plot_area.x, 0.5), kBarRowHeight_px - 8},
                   {bar.colour, 1, 2, title});
  if (is_beyond_axis) draw_axis_break({end - 26, y + 4, 6, kBarRowHeight_px - 8}, canvas);
  double label_x = end;
  if (bar.value.low && bar.value.high) {
    const double low = axes.x.at(*bar.value.low);
    const double high = axes.x.at(*bar.value.high);
    canvas.draw_line({low, centre_y}, {high, centre_y}, {kTextColour, 1.2});
    for (const double x : {low, high}) canvas.draw_line({x, centre_y - 3.5}, {x, centre_y + 3.5}, {kTextColour, 1.2});
    label_x = std::max(label_x, high);
  }
  canvas.draw_text({label_x + 7, centre_y + 4}, format_number(bar.value.value, 3) + suffix, {11, kMutedTextColour});
}

}  // namespace

Result<std::string> bars_svg(const RunView& view, const PlotQuery& query) {
  const LevelView* const level = find_level(view, query.by);
  if (level == nullptr) return nothing_to_plot_error("no such rows", "run joulemap report --by layer for the reason");
  const std::vector<Bar> bars = make_bars(view, *level, query);
  if (bars.empty()) return nothing_to_plot_error("no energy of rows", "run joulemap report --by layer for the reason");
  const double height = kBarRowHeight_px * static_cast<double>(bars.size()) + 84;
  const PlottedQuantity quantity = plotted_quantity(query.sort_by);
  PlotFrame frame = make_plot_frame(view, level, fmt::format("{} by {}", quantity.title, level->by), height);
  std::vector<LegendEntry> legend;
  std::set<std::string> attribution_bases;
  double highest = 0;
  for (const Bar& bar : bars) {
    if (bar.colour != kUnattributedColour) highest = std::max({highest, bar.value.value, bar.value.high.value_or(0)});
    if (!bar.attribution_basis.empty() && attribution_bases.insert(bar.attribution_basis).second)
      legend.push_back({bar.attribution_basis, bar.colour});
  }
  draw_legend(frame.canvas, {frame.plot_area.x + kBarNamesWidth_px, frame.plot_area.y + 6},
              frame.plot_area.width - kBarNamesWidth_px, legend);
  const Rect plot_area{frame.plot_area.x + kBarNamesWidth_px, frame.plot_area.y + 32,
                       frame.plot_area.width - kBarNamesWidth_px - 70, height - 84};
  if (!(highest > 0)) highest = 1;
  const ValueRange range = range_with_round_ends(0, highest, 6);
  const PlotAxes axes{plot_area, {0, range.high, plot_area.x, plot_area.right()}, {}};
  draw_x_axis(frame.canvas, axes, quantity.axis_title, 6, true);
  double y = plot_area.y;
  for (const Bar& bar : bars) {
    draw_bar(frame.canvas, axes, y, bar, quantity.unit);
    y += kBarRowHeight_px;
  }
  return std::move(frame.canvas).finish();
}

}  // namespace joulemap::report
