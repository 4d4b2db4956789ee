// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/activity.h"
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

constexpr double kRow = 24;
constexpr double kNames = 300;
constexpr std::size_t kUsualBars = 20;

struct Bar {
  std::string name;
  ReportRow row;
  std::string_view colour;
};

std::string name_of(const ReportRow& row, std::string_view by, bool with_device) {
  const std::string device = with_device && !row.device.empty() ? row.device + " " : "";
  if (by == "kernel") return device + brief_kernel_name(row.display_name, 46);
  std::string name = device;
  for (std::size_t i = 0; i < row.path.size(); ++i) name += (i > 0 ? " " : "") + row.path[i];
  return name;
}

std::vector<Bar> bars_of(const RunView& view, const LevelView& level, const PlotQuery& query) {
  std::vector<const ReportRow*> rows;
  std::set<std::string> devices;
  for (const ReportRow& row : level.rows) {
    if (!row.energy_j || (!row.path.empty() && row.path.front() == kProbeMode))
      continue;  // the footer shows the cost
                 // of probing
    if (!scopes::path_matches(row.path, row.device, query.filter)) continue;
    rows.push_back(&row);
    devices.insert(row.device);
  }
  const std::size_t shown = std::min(query.top.value_or(kUsualBars), rows.size());
  std::vector<Bar> bars;
  for (std::size_t i = 0; i < shown; ++i) {
    bars.push_back({name_of(*rows[i], level.by, devices.size() > 1), *rows[i], colour_of_basis(rows[i]->basis)});
  }
  if (shown < rows.size()) {
    Bar rest{fmt::format("{} more", rows.size() - shown), {}, kUnattributedColour};
    rest.row.energy_j = 0;
    for (std::size_t i = shown; i < rows.size(); ++i) *rest.row.energy_j += *rows[i]->energy_j;
    bars.push_back(rest);
  }
  if (!query.filter.empty()) return bars;
  for (const EnergyNode& node : unattributed_nodes_without_probing(report_for_level(view, level))) {
    if (node.sum.energy_j.value_or(0) > 0) bars.push_back({node.name, node.sum, kUnattributedColour});
  }
  return bars;
}

// Marks a bar that extends beyond the axis.
void draw_cut(const Rect& rect, SvgCanvas& canvas) {
  for (const double shift : {0.0, 7.0}) {
    canvas.line({rect.x + shift, rect.bottom() + 2}, {rect.x + shift + rect.width, rect.y - 2}, {"#ffffff", 3});
  }
}

void draw_bar(SvgCanvas& canvas, const Axes& axes, double y, const Bar& bar) {
  const double centre_y = y + kRow / 2;
  const bool is_cut = *bar.row.energy_j > axes.x.high;
  const double end = is_cut ? axes.plot_area.right() : axes.x.at(*bar.row.energy_j);
  canvas.text({axes.plot_area.x - 10, centre_y + 4}, fitted_text(bar.name, 12, kNames - 16),
              {12, kTextColour, TextAnchor::end});
  const std::string title = fmt::format("{}: {} J{}", bar.name, format_number(*bar.row.energy_j),
                                        bar.row.basis.empty() ? "" : fmt::format(" ({})", bar.row.basis));
  canvas.rect({axes.plot_area.x, y + 4, std::max(end - axes.plot_area.x, 0.5), kRow - 8}, {bar.colour, 1, 2, title});
  if (is_cut) draw_cut({end - 26, y + 4, 6, kRow - 8}, canvas);
  double label_x = end;
  if (bar.row.low_j && bar.row.high_j) {
    const double low = axes.x.at(*bar.row.low_j);
    const double high = axes.x.at(*bar.row.high_j);
    canvas.line({low, centre_y}, {high, centre_y}, {kTextColour, 1.2});
    for (const double x : {low, high}) canvas.line({x, centre_y - 3.5}, {x, centre_y + 3.5}, {kTextColour, 1.2});
    label_x = std::max(label_x, high);
  }
  canvas.text({label_x + 7, centre_y + 4}, fmt::format("{} J", format_number(*bar.row.energy_j, 3)),
              {11, kMutedTextColour});
}

}  // namespace

Result<std::string> bars_svg(const RunView& view, const PlotQuery& query) {
  const LevelView* const level = find_level(view, query.by);
  if (level == nullptr) return nothing_to_plot_error("no such rows", "run joulemap report --by layer for the reason");
  const std::vector<Bar> bars = bars_of(view, *level, query);
  if (bars.empty()) return nothing_to_plot_error("no energy of rows", "run joulemap report --by layer for the reason");
  const double height = kRow * static_cast<double>(bars.size()) + 84;
  PlotFrame frame = make_plot_frame(view, level, fmt::format("Energy by {}", level->by), height);
  std::vector<LegendEntry> legend;
  std::set<std::string> bases;
  double highest = 0;
  for (const Bar& bar : bars) {
    if (bar.colour != kUnattributedColour) highest = std::max({highest, *bar.row.energy_j, bar.row.high_j.value_or(0)});
    if (!bar.row.basis.empty() && bases.insert(bar.row.basis).second) legend.push_back({bar.row.basis, bar.colour});
  }
  draw_legend(frame.canvas, {frame.plot_area.x + kNames, frame.plot_area.y + 6}, frame.plot_area.width - kNames,
              legend);
  const Rect plot_area{frame.plot_area.x + kNames, frame.plot_area.y + 32, frame.plot_area.width - kNames - 70,
                       height - 84};
  if (!(highest > 0)) highest = 1;
  const Range range = nice_range(0, highest, 6);
  const Axes axes{plot_area, {0, range.high, plot_area.x, plot_area.right()}, {}};
  draw_x_axis(frame.canvas, axes, "joules; whiskers: 90 % interval; cut bars extend beyond the axis", 6, true);
  double y = plot_area.y;
  for (const Bar& bar : bars) {
    draw_bar(frame.canvas, axes, y, bar);
    y += kRow;
  }
  return std::move(frame.canvas).finish();
}

}  // namespace joulemap::report
