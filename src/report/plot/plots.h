// SPDX-License-Identifier: Apache-2.0
//
// `report --plot`: plots of a run as SVG, each in svg_<plot>.cc. If the run lacks the data, the error explains what to
// do. The same run gives the same bytes. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/run_view.h"
#include "report/text/energy_tree.h"

namespace joulemap::report {

enum class PlotKind { timeline, violin, box, lines, bars, loss, flame, heatmap };
std::optional<PlotKind> find_plot(std::string_view name);

struct PlotQuery {
  PlotKind plot = PlotKind::timeline;
  std::string by;                        // level of bars, flame graph, violins, boxes and lines; empty: layer
  std::string name_filter;               // only rows that match it (scopes/path_tree.h)
  std::optional<std::size_t> max_items;  // maximum number of bars, violins, boxes, lines or layers
  std::optional<std::size_t> smoothing_window =
      {};                              // width of the moving average of lines, in points; none: 1/50 of the points
  std::optional<SortBy> sort_by = {};  // bars: quantity that they show and are sorted by; none: energy
};

// Fails with a usage error if the plot does not support the level.
Status validate_plot_query(const PlotQuery& query);
// Level of violins, boxes and lines: "phase" if the query requests it, else "layer".
std::string_view plotted_distribution_level(const PlotQuery& query);

Result<std::string> plot_svg(const RunView& view, const PlotQuery& query);

// Power of every domain against time, with phases, epochs and up to four gauges (temperature, clocks ...) below.
Result<std::string> timeline_svg(const RunView& view);
// Distribution of the energy of layers or phases per step, as violins, or as boxes with whiskers at P5 and P95.
Result<std::string> distributions_svg(const RunView& view, const PlotQuery& query);
// Energy of layers or phases per step against the step or time, one line each. Needs ViewLimits::layer_points > 0.
Result<std::string> lines_svg(const RunView& view, const PlotQuery& query);
// The largest rows as bars with intervals. Bars of energy include idle and unattributed energy; `query.sort` selects
// power, time or count instead.
Result<std::string> bars_svg(const RunView& view, const PlotQuery& query);
// The loss against the energy used so far, and for each epoch the energy per unit by which the loss fell.
Result<std::string> loss_svg(const RunView& view);
// Flame graph of devices, phases and nested modules, with widths proportional to energy.
Result<std::string> flame_svg(const RunView& view, const PlotQuery& query);
// Energy of layers by phase, as a heat map.
Result<std::string> heatmap_svg(const RunView& view, const PlotQuery& query);

// The level `level_name`; null if the view lacks it. If `level_name` is empty: layers, or else the first level.
const LevelView* find_level(const RunView& view, std::string_view level_name);
// The rows, groups and sums of the level as a ReportResult, for functions that need one. Its `idle` is not that of the
// level.
ReportResult make_level_report(const RunView& view, const LevelView& level);
// The error "nothing to plot: the recording contains <what>".
Error nothing_to_plot_error(std::string_view missing_content, std::string_view remedy);

}  // namespace joulemap::report
