// SPDX-License-Identifier: Apache-2.0
//
// Plots of a run as SVG, a file each (svg_<plot>.cc): the same run gives the same bytes. Light theme, axes with units,
// intervals as whiskers. A run that does not hold what a plot shows gives an error that says how to record it. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/run_view.h"

namespace joulemap::report {

enum class Plot { timeline, violin, box, lines, bars, loss, flame, heatmap };
std::optional<Plot> plot_named(std::string_view name);

struct PlotQuery {
  Plot plot = Plot::timeline;
  std::string by;                          // level of bars, flames and spreads; empty: layers
  std::string filter;                      // only rows that hold it
  std::optional<std::size_t> top;          // so many rows, layers or bars
  std::optional<std::size_t> smooth = {};  // lines are means over so many points; else over a part of the run
};

// Fails, as wrong usage, where the plot has no such level.
Status can_plot(const PlotQuery& query);
// Of violins, boxes and lines: "layer" or "phase".
std::string_view spread_level_of(const PlotQuery& query);

Result<std::string> plot_svg(const RunView& view, const PlotQuery& query);

// Power of every domain over the run; phases, epochs and tracks (temperature, clocks ...) below.
Result<std::string> timeline_svg(const RunView& view);
// Joules of layers or phases from step to step, as densities or as boxes with whiskers at 5 and 95 %.
Result<std::string> spreads_svg(const RunView& view, const PlotQuery& query);
// The same over the run, a line for each; of a view with points of layers.
Result<std::string> lines_svg(const RunView& view, const PlotQuery& query);
// The largest rows with their intervals, and what is idle or nobody's.
Result<std::string> bars_svg(const RunView& view, const PlotQuery& query);
// The loss against the energy that was spent for it, and what a unit of it cost in each epoch.
Result<std::string> loss_svg(const RunView& view);
// Devices, phases, modules within modules, as wide as their energy.
Result<std::string> flame_svg(const RunView& view, const PlotQuery& query);
// Layers by phases.
Result<std::string> heatmap_svg(const RunView& view, const PlotQuery& query);

// The level that a plot shows: the one asked for, else layers, else the first that has rows.
const LevelView* level_of(const RunView& view, std::string_view by);
// As `report --by` would have it.
ReportResult report_of(const RunView& view, const LevelView& level);
Error nothing_to_plot(std::string_view what, std::string_view remedy);

}  // namespace joulemap::report
