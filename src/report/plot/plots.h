// SPDX-License-Identifier: Apache-2.0
//
// Plots of a run as SVG, one source file each (svg_<plot>.cc): the same run gives the same bytes. Light theme, axes
// with units, intervals as whiskers. If the run lacks the data, the error explains how to record it. Pure.
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
  std::string filter;                      // only rows that contain it
  std::optional<std::size_t> top;          // number of rows, layers or bars
  std::optional<std::size_t> smooth = {};  // points per moving mean of a line; default: a fraction of the run
};

// Fails with a usage error if the plot does not support the level.
Status validate_plot_query(const PlotQuery& query);
// Level of violins, boxes and lines: "layer" or "phase".
std::string_view distribution_level(const PlotQuery& query);

Result<std::string> plot_svg(const RunView& view, const PlotQuery& query);

// Power of every domain over the run; phases, epochs and tracks (temperature, clocks and others) below.
Result<std::string> timeline_svg(const RunView& view);
// Energy of layers or phases over the steps, as densities or as boxes with whiskers at 5 and 95 %.
Result<std::string> distributions_svg(const RunView& view, const PlotQuery& query);
// The same energies over the run, one line each; requires a view with layer points.
Result<std::string> lines_svg(const RunView& view, const PlotQuery& query);
// The largest rows with intervals, and idle and unattributed energy.
Result<std::string> bars_svg(const RunView& view, const PlotQuery& query);
// The loss over the energy used so far, and for each epoch the energy per unit by which the loss fell.
Result<std::string> loss_svg(const RunView& view);
// Flame graph: devices, phases, nested modules, with widths proportional to energy.
Result<std::string> flame_svg(const RunView& view, const PlotQuery& query);
// Energy of layers by phase.
Result<std::string> heatmap_svg(const RunView& view, const PlotQuery& query);

// The level that a plot shows: the requested one, else layers, else the first level with rows.
const LevelView* find_level(const RunView& view, std::string_view by);
// The report that `report --by` would give for the level.
ReportResult report_for_level(const RunView& view, const LevelView& level);
Error nothing_to_plot_error(std::string_view what, std::string_view remedy);

}  // namespace joulemap::report
