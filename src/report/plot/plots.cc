// SPDX-License-Identifier: Apache-2.0
#include "report/plot/plots.h"

#include <fmt/format.h>

#include <array>

namespace joulemap::report {

std::optional<PlotKind> find_plot(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, PlotKind>, 8> kPlots = {{{"timeline", PlotKind::timeline},
                                                                            {"violin", PlotKind::violin},
                                                                            {"box", PlotKind::box},
                                                                            {"lines", PlotKind::lines},
                                                                            {"bars", PlotKind::bars},
                                                                            {"loss", PlotKind::loss},
                                                                            {"flame", PlotKind::flame},
                                                                            {"heatmap", PlotKind::heatmap}}};
  for (const auto& [plot_name, plot] : kPlots) {
    if (plot_name == name) return plot;
  }
  return std::nullopt;
}

Status validate_plot_query(const PlotQuery& query) {
  const bool is_distribution_plot =
      query.plot == PlotKind::violin || query.plot == PlotKind::box || query.plot == PlotKind::lines;
  const bool is_run_plot = query.plot == PlotKind::timeline || query.plot == PlotKind::loss;
  if (query.sort_by && query.plot != PlotKind::bars)
    return Error{ErrorCode::usage, "this plot does not take --sort", "use --plot bars"};
  if (query.sort_by == SortBy::order)
    return Error{ErrorCode::usage, "bars have no order of steps", "use --sort energy"};
  if (query.by.empty() || !(is_distribution_plot || is_run_plot)) return Done{};
  if (is_run_plot)
    return Error{ErrorCode::usage, "this plot shows the whole run and does not take --by", "use --plot bars"};
  if (query.by == plotted_distribution_level(query)) return Done{};
  return Error{ErrorCode::usage,
               fmt::format("this plot shows layers or phases per step and does not take --by {}", query.by),
               "use --by phase, --by layer, or --plot bars"};
}

std::string_view plotted_distribution_level(const PlotQuery& query) { return query.by == "phase" ? "phase" : "layer"; }

Result<std::string> plot_svg(const RunView& view, const PlotQuery& query) {
  switch (query.plot) {
    case PlotKind::timeline:
      return timeline_svg(view);
    case PlotKind::violin:
    case PlotKind::box:
      return distributions_svg(view, query);
    case PlotKind::lines:
      return lines_svg(view, query);
    case PlotKind::bars:
      return bars_svg(view, query);
    case PlotKind::loss:
      return loss_svg(view);
    case PlotKind::flame:
      return flame_svg(view, query);
    case PlotKind::heatmap:
      return heatmap_svg(view, query);
  }
  return nothing_to_plot_error("no such plot", {});
}

const LevelView* find_level(const RunView& view, std::string_view level_name) {
  if (!level_name.empty()) return view.level(level_name);
  const LevelView* const layers = view.level("layer");
  return layers != nullptr || view.levels.empty() ? layers : &view.levels.front();
}

ReportResult make_level_report(const RunView& view, const LevelView& level) {
  ReportResult result = view.run;
  result.by = level.by;
  result.rows = level.rows;
  result.groups = level.groups;
  result.attributed_j = level.attributed_j;
  result.idle_j = level.idle_j;
  result.unattributed_j = level.unattributed_j;
  result.diagnostics.add_all(level.diagnostics);
  return result;
}

Error nothing_to_plot_error(std::string_view missing_content, std::string_view remedy) {
  return {ErrorCode::not_found, fmt::format("nothing to plot: the recording contains {}", missing_content),
          std::string(remedy)};
}

}  // namespace joulemap::report
