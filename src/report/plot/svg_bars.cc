// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/activity.h"
#include "model/path_tree.h"
#include "report/plot/plots.h"
#include "report/plot/svg_axes.h"
#include "report/plot/svg_frame.h"
#include "report/plot/svg_theme.h"
#include "report/text/energy_rows.h"
#include "report/text/energy_tree.h"
#include "report/text/kernel_names.h"
#include "report/text/text_style.h"

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

std::string name_of(const ReportRow& row, std::string_view by, bool tells_device) {
  const std::string device = tells_device && !row.device.empty() ? row.device + " " : "";
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
    if (!path_holds(row.path, row.device, query.filter)) continue;
    rows.push_back(&row);
    devices.insert(row.device);
  }
  const std::size_t shown = std::min(query.top.value_or(kUsualBars), rows.size());
  std::vector<Bar> bars;
  for (std::size_t i = 0; i < shown; ++i) {
    bars.push_back({name_of(*rows[i], level.by, devices.size() > 1), *rows[i], colour_of_basis(rows[i]->basis)});
  }
  if (shown < rows.size()) {
    Bar rest{fmt::format("{} more", rows.size() - shown), {}, kUnattributed};
    rest.row.energy_j = 0;
    for (std::size_t i = shown; i < rows.size(); ++i) *rest.row.energy_j += *rows[i]->energy_j;
    bars.push_back(rest);
  }
  if (!query.filter.empty()) return bars;
  for (const EnergyNode& node : unattributed_nodes_without_probing(report_of(view, level))) {
    if (node.sum.energy_j.value_or(0) > 0) bars.push_back({node.name, node.sum, kUnattributed});
  }
  return bars;
}

// Marks a bar that extends beyond the axis.
void draw_cut(const Box& box, SvgCanvas& canvas) {
  for (const double shift : {0.0, 7.0}) {
    canvas.line({box.x + shift, box.bottom() + 2}, {box.x + shift + box.width, box.y - 2}, {"#ffffff", 3});
  }
}

void draw_bar(SvgCanvas& canvas, const Axes& axes, double y, const Bar& bar) {
  const double middle = y + kRow / 2;
  const bool is_cut = *bar.row.energy_j > axes.x.high;
  const double end = is_cut ? axes.inside.right() : axes.x.at(*bar.row.energy_j);
  canvas.text({axes.inside.x - 10, middle + 4}, fitted_text(bar.name, 12, kNames - 16), {12, kInk, Anchor::end});
  const std::string title = fmt::format("{}: {} J{}", bar.name, number(*bar.row.energy_j),
                                        bar.row.basis.empty() ? "" : fmt::format(" ({})", bar.row.basis));
  canvas.box({axes.inside.x, y + 4, std::max(end - axes.inside.x, 0.5), kRow - 8}, {bar.colour, 1, 2, title});
  if (is_cut) draw_cut({end - 26, y + 4, 6, kRow - 8}, canvas);
  double label_x = end;
  if (bar.row.low_j && bar.row.high_j) {
    const double low = axes.x.at(*bar.row.low_j);
    const double high = axes.x.at(*bar.row.high_j);
    canvas.line({low, middle}, {high, middle}, {kInk, 1.2});
    for (const double x : {low, high}) canvas.line({x, middle - 3.5}, {x, middle + 3.5}, {kInk, 1.2});
    label_x = std::max(label_x, high);
  }
  canvas.text({label_x + 7, middle + 4}, fmt::format("{} J", number(*bar.row.energy_j, 3)), {11, kMuted});
}

}  // namespace

Result<std::string> bars_svg(const RunView& view, const PlotQuery& query) {
  const LevelView* const level = level_of(view, query.by);
  if (level == nullptr) return nothing_to_plot("no such rows", "report --by layer says why");
  const std::vector<Bar> bars = bars_of(view, *level, query);
  if (bars.empty()) return nothing_to_plot("no energies of rows", "report --by layer says why");
  const double height = kRow * static_cast<double>(bars.size()) + 84;
  Frame frame = framed(view, level, fmt::format("Energy by {}", level->by), height);
  std::vector<LegendEntry> legend;
  std::set<std::string> bases;
  double highest = 0;
  for (const Bar& bar : bars) {
    if (bar.colour != kUnattributed) highest = std::max({highest, *bar.row.energy_j, bar.row.high_j.value_or(0)});
    if (!bar.row.basis.empty() && bases.insert(bar.row.basis).second) legend.push_back({bar.row.basis, bar.colour});
  }
  draw_legend(frame.canvas, {frame.inside.x + kNames, frame.inside.y + 6}, frame.inside.width - kNames, legend);
  const Box inside{frame.inside.x + kNames, frame.inside.y + 32, frame.inside.width - kNames - 70, height - 84};
  if (!(highest > 0)) highest = 1;
  const Range range = nice_range(0, highest, 6);
  const Axes axes{inside, {0, range.high, inside.x, inside.right()}, {}};
  draw_x_axis(frame.canvas, axes, "joules; whiskers: 90 % interval; cut bars go on beyond the axis", 6, true);
  double y = inside.y;
  for (const Bar& bar : bars) {
    draw_bar(frame.canvas, axes, y, bar);
    y += kRow;
  }
  return std::move(frame.canvas).finish();
}

}  // namespace joulemap::report
