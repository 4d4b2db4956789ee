// SPDX-License-Identifier: Apache-2.0
#include "report/plot/plots.h"

#include <fmt/format.h>

#include <array>

namespace joulemap::report {

std::optional<Plot> find_plot(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Plot>, 8> kPlots = {{{"timeline", Plot::timeline},
                                                                        {"violin", Plot::violin},
                                                                        {"box", Plot::box},
                                                                        {"lines", Plot::lines},
                                                                        {"bars", Plot::bars},
                                                                        {"loss", Plot::loss},
                                                                        {"flame", Plot::flame},
                                                                        {"heatmap", Plot::heatmap}}};
  for (const auto& [known, plot] : kPlots) {
    if (known == name) return plot;
  }
  return std::nullopt;
}

Status validate_plot_query(const PlotQuery& query) {
  const bool is_spread = query.plot == Plot::violin || query.plot == Plot::box || query.plot == Plot::lines;
  const bool is_of_the_run = query.plot == Plot::timeline || query.plot == Plot::loss;
  if (query.sort_by && query.plot != Plot::bars)
    return Error{ErrorCode::usage, "this plot does not take --sort", "use --plot bars"};
  if (query.sort_by == SortBy::order)
    return Error{ErrorCode::usage, "bars have no order of steps", "use --sort energy"};
  if (query.by.empty() || !(is_spread || is_of_the_run)) return Done{};
  if (is_of_the_run)
    return Error{ErrorCode::usage, "this plot shows the whole run and does not take --by", "use --plot bars"};
  if (query.by == plotted_distribution_level(query)) return Done{};
  return Error{ErrorCode::usage,
               fmt::format("this plot shows layers or phases per step and does not take --by {}", query.by),
               "use --by phase, --by layer, or --plot bars"};
}

std::string_view plotted_distribution_level(const PlotQuery& query) { return query.by == "phase" ? "phase" : "layer"; }

Result<std::string> plot_svg(const RunView& view, const PlotQuery& query) {
  switch (query.plot) {
    case Plot::timeline:
      return timeline_svg(view);
    case Plot::violin:
    case Plot::box:
      return distributions_svg(view, query);
    case Plot::lines:
      return lines_svg(view, query);
    case Plot::bars:
      return bars_svg(view, query);
    case Plot::loss:
      return loss_svg(view);
    case Plot::flame:
      return flame_svg(view, query);
    case Plot::heatmap:
      return heatmap_svg(view, query);
  }
  return nothing_to_plot_error("no such plot", {});
}

const LevelView* find_level(const RunView& view, std::string_view by) {
  if (!by.empty()) return view.level(by);
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

Error nothing_to_plot_error(std::string_view what, std::string_view remedy) {
  return {ErrorCode::not_found, fmt::format("nothing to plot: the recording contains {}", what), std::string(remedy)};
}

}  // namespace joulemap::report
