// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/amount_text.h"
#include "report/plot/experiment_plots.h"
#include "report/plot/svg_axes.h"
#include "report/plot/svg_cells.h"
#include "report/plot/svg_theme.h"

namespace joulemap::report {
namespace {

constexpr double kFacetHeight_px = 210;
constexpr double kFacetLabelHeight_px = 62;  // height for the facet name above and the group names below
constexpr double kFacetLeftMargin_px = 66;

struct CellBar {
  double value = 0;
  double low = 0;
  double high = 0;
  std::string_view colour;
  std::string tooltip;
};

// Bars side by side, with a name below the group.
struct BarGroup {
  std::string name;
  std::vector<CellBar> bars;
};

double highest_bar_value(const std::vector<BarGroup>& groups) {
  double max_bar_value = 0;
  for (const BarGroup& group : groups) {
    for (const CellBar& bar : group.bars) max_bar_value = std::max({max_bar_value, bar.value, bar.high});
  }
  return max_bar_value;
}

void draw_bars(SvgCanvas& canvas, const Rect& plot_area, const std::vector<BarGroup>& groups, const AxisUnit& unit) {
  const double max_bar_value = highest_bar_value(groups) / unit.unit_factor;
  const PlotAxes axes{
      plot_area,
      {},
      {0, range_with_round_ends(0, max_bar_value > 0 ? max_bar_value : 1, 4).high, plot_area.bottom(), plot_area.y}};
  draw_y_axis(canvas, axes, unit.unit_text, 4);
  const double width = plot_area.width / static_cast<double>(std::max<std::size_t>(groups.size(), 1));
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const double left_x = plot_area.x + width * static_cast<double>(i);
    const double bar_width =
        std::min(width * 0.8 / static_cast<double>(std::max<std::size_t>(groups[i].bars.size(), 1)), 46.0);
    double x = left_x + width / 2 - bar_width * static_cast<double>(groups[i].bars.size()) / 2;
    for (const CellBar& bar : groups[i].bars) {
      const double top = axes.y.at(std::max(bar.value, 0.0) / unit.unit_factor);
      canvas.draw_rect({x + 1, top, bar_width - 2, plot_area.bottom() - top}, {bar.colour, 1, 1, bar.tooltip});
      const double centre_x = x + bar_width / 2;
      if (bar.high > bar.low) {
        const double low = axes.y.at(std::max(bar.low, 0.0) / unit.unit_factor);
        const double high = axes.y.at(std::max(bar.high, 0.0) / unit.unit_factor);
        canvas.draw_line({centre_x, low}, {centre_x, high}, {kTextColour, 1.2});
        for (const double y : {low, high}) canvas.draw_line({centre_x - 3, y}, {centre_x + 3, y}, {kTextColour, 1.2});
      }
      x += bar_width;
    }
    canvas.draw_text({left_x + width / 2, plot_area.bottom() + 16}, shorten_to_width(groups[i].name, 11, width - 4),
                     {11, kMutedTextColour, TextAnchor::middle});
  }
}

// Positions of the facets: small ones side by side, in up to three columns.
struct FacetGrid {
  std::size_t columns = 1;
  double width = 0;
  Rect facet_area(std::size_t index) const {
    const double x = kPlotMargin_px + width * static_cast<double>(index % columns);
    const double y = kPlotTop_px + 14 + (kFacetHeight_px + kFacetLabelHeight_px) * static_cast<double>(index / columns);
    return {x + kFacetLeftMargin_px, y + 12, width - kFacetLeftMargin_px - 12, kFacetHeight_px - 12};
  }
  double total_height(std::size_t count) const {
    return kPlotTop_px + 14 +
           (kFacetHeight_px + kFacetLabelHeight_px) *
               std::ceil(static_cast<double>(count) / static_cast<double>(columns));
  }
};

FacetGrid make_facet_grid(std::size_t facets, std::size_t groups) {
  FacetGrid grid;
  grid.columns = facets == 1 || groups > 6 ? 1 : facets % 3 == 0 && groups <= 4 ? 3 : 2;
  grid.width = (kPlotWidth_px - 2 * kPlotMargin_px) / static_cast<double>(grid.columns);
  return grid;
}

std::string facets_svg(const AnalysisResult& result, const FactorRoles& roles, std::string_view title,
                       const Measure& measure, const std::vector<Facet>& facets,
                       const std::vector<std::vector<BarGroup>>& groups, bool has_legend) {
  std::size_t max_group_count = 1;
  for (const std::vector<BarGroup>& facet_groups : groups)
    max_group_count = std::max(max_group_count, facet_groups.size());
  const FacetGrid grid = make_facet_grid(facets.size(), max_group_count);
  SvgCanvas canvas = make_titled_canvas(grid.total_height(facets.size()), title, "means by cell");
  if (has_legend) draw_hue_legend(canvas, result, roles);
  for (std::size_t i = 0; i < facets.size(); ++i) {
    const Rect plot_area = grid.facet_area(i);
    canvas.draw_text({plot_area.x, plot_area.y - 8}, facets[i].name, {12, kTextColour, TextAnchor::start, true});
    draw_bars(canvas, plot_area, groups[i], choose_axis_unit(measure, highest_bar_value(groups[i])));
  }
  return std::move(canvas).finish();
}

// The cells of a facet, grouped by level of the grouping factor.
template <class AddBarsFunction>
std::vector<BarGroup> make_bar_groups(const AnalysisResult& result, const FactorRoles& roles, const Facet& facet,
                                      const AddBarsFunction& add_bars) {
  const std::size_t levels = roles.group_factor ? result.factors[*roles.group_factor].levels.size() : 1;
  std::vector<BarGroup> groups;
  for (std::size_t level = 0; level < levels; ++level) {
    BarGroup group;
    if (roles.group_factor) group.name = result.factors[*roles.group_factor].levels[level];
    for (const std::size_t index : facet.cells) {
      const AnalysisCell& cell = result.cells[index];
      if (!roles.group_factor || cell.levels[*roles.group_factor] == level) add_bars(cell, group.bars);
    }
    if (!group.bars.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

std::string cell_bars_svg(const AnalysisResult& result, std::size_t measure) {
  const FactorRoles roles = assign_factor_roles(result);
  const std::vector<Facet> facets = make_facets(result, roles);
  std::vector<std::vector<BarGroup>> groups;
  bool has_values = false;
  for (const Facet& facet : facets) {
    groups.push_back(make_bar_groups(result, roles, facet, [&](const AnalysisCell& cell, std::vector<CellBar>& bars) {
      const std::optional<MeasureSummary>& summary = cell.measures[measure];
      if (!summary) return;
      has_values = true;
      bars.push_back({summary->mean, summary->low.value_or(summary->mean), summary->high.value_or(summary->mean),
                      cell_colour(roles, cell), amount_text(summary->mean, result.measures[measure].unit)});
    }));
  }
  if (!has_values) return "";
  const std::string title =
      fmt::format("{} by {}; bars: means, whiskers: {:.0f} % intervals", result.measures[measure].name,
                  roles.group_factor ? result.factors[*roles.group_factor].name : "cell", 100 * (1 - result.alpha));
  return facets_svg(result, roles, title, result.measures[measure], facets, groups, true);
}

std::string epoch_power_svg(const AnalysisResult& result) {
  const FactorRoles roles = assign_factor_roles(result);
  const std::vector<Facet> facets = make_facets(result, roles);
  std::vector<std::vector<BarGroup>> groups;
  bool has_values = false;
  for (const Facet& facet : facets) {
    groups.push_back(make_bar_groups(result, roles, facet, [&](const AnalysisCell& cell, std::vector<CellBar>& bars) {
      if (!cell.epochs) return;
      const EpochSummary& epochs = *cell.epochs;
      const std::string name =
          roles.hue_factor ? result.factors[*roles.hue_factor].levels[cell.levels[*roles.hue_factor]] : "";
      const auto add = [&](std::optional<double> energy_j, std::optional<double> time_s, std::string_view colour,
                           std::string_view epochs_text) {
        if (!energy_j || !time_s || *time_s <= 0) return;
        has_values = true;
        const double power_w = *energy_j / *time_s;
        bars.push_back({power_w, 0, 0, colour, fmt::format("{} {}: {:.1f} W", name, epochs_text, power_w)});
      };
      add(epochs.first_j, epochs.first_s, kUnattributedColour, "first epoch");
      add(epochs.later_j, epochs.later_s, cell_colour(roles, cell), "later epochs");
    }));
  }
  if (!has_values) return "";
  return facets_svg(result, roles, "Mean power; grey: first epoch, colour: later epochs",
                    {"power", MeasureKind::metric, "W"}, facets, groups, true);
}

}  // namespace joulemap::report
