// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "report/plot/experiment_plots.h"
#include "report/plot/svg_axes.h"
#include "report/plot/svg_cells.h"
#include "report/plot/svg_theme.h"
#include "report/text/analysis_tables.h"

namespace joulemap::report {
namespace {

constexpr double kEpochStripHeight_px = 110;

// The first completed row of a cell whose first epoch has an energy; null if there is none.
const ExperimentRow* find_row_with_epochs(const ExperimentData& data, const AnalysisCell& cell) {
  for (const ExperimentRow& row : data.rows) {
    if (row.levels == cell.levels && row.state == ExperimentRowState::done && !row.epochs.empty() &&
        row.epochs[0].energy_j) {
      return &row;
    }
  }
  return nullptr;
}

void draw_epoch_powers(SvgCanvas& canvas, const PlotAxes& axes, const ExperimentRow& row, std::string_view colour) {
  std::vector<Point> line;
  for (const EpochResult& epoch : row.epochs) {
    if (!epoch.energy_j || epoch.elapsed_s <= 0) continue;
    const double y = axes.y.at(*epoch.energy_j / epoch.elapsed_s);
    line.push_back({axes.x.at(epoch.start_s), y});
    line.push_back({axes.x.at(epoch.start_s + epoch.elapsed_s), y});
    const double end = axes.x.at(epoch.start_s + epoch.elapsed_s);
    canvas.draw_line({end, axes.plot_area.y}, {end, axes.plot_area.bottom()}, {kAxisColour, 1, "4 3"});
  }
  canvas.draw_polyline(line, {colour, 2});
}

}  // namespace

std::string epoch_series_svg(const ExperimentData& data, const AnalysisResult& result, std::size_t max_cells) {
  std::vector<std::pair<const AnalysisCell*, const ExperimentRow*>> shown_cells;
  double longest_s = 0;
  double highest_w = 0;
  for (const AnalysisCell& cell : result.cells) {
    const ExperimentRow* const row = find_row_with_epochs(data, cell);
    if (row == nullptr || shown_cells.size() == max_cells) continue;
    shown_cells.emplace_back(&cell, row);
    for (const EpochResult& epoch : row->epochs) {
      longest_s = std::max(longest_s, epoch.start_s + epoch.elapsed_s);
      if (epoch.energy_j && epoch.elapsed_s > 0) highest_w = std::max(highest_w, *epoch.energy_j / epoch.elapsed_s);
    }
  }
  if (shown_cells.empty() || longest_s <= 0) return "";
  const FactorRoles roles = assign_factor_roles(result);
  SvgCanvas canvas =
      make_titled_canvas(kPlotTop_px + kEpochStripHeight_px * static_cast<double>(shown_cells.size()) + 60,
                         "Power by epoch; dashes: end of an epoch", "the first row of each cell");
  draw_hue_legend(canvas, result, roles);
  for (std::size_t i = 0; i < shown_cells.size(); ++i) {
    const Rect plot_area{kPlotMargin_px + 60, kPlotTop_px + 22 + kEpochStripHeight_px * static_cast<double>(i),
                         kPlotWidth_px - 2 * kPlotMargin_px - 80, kEpochStripHeight_px - 30};
    const PlotAxes axes{plot_area,
                        {0, longest_s, plot_area.x, plot_area.right()},
                        {0, range_with_round_ends(0, highest_w, 3).high, plot_area.bottom(), plot_area.y}};
    draw_y_axis(canvas, axes, "W", 3);
    if (i + 1 == shown_cells.size()) draw_x_axis(canvas, axes, "seconds since the run began", 8);
    canvas.draw_text({plot_area.x, plot_area.y - 5}, short_levels_text(result, shown_cells[i].first->levels),
                     {11, kTextColour});
    draw_epoch_powers(canvas, axes, *shown_cells[i].second, cell_colour(roles, *shown_cells[i].first));
  }
  return std::move(canvas).finish();
}

}  // namespace joulemap::report
