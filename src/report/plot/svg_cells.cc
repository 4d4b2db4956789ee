// SPDX-License-Identifier: Apache-2.0
#include "report/plot/svg_cells.h"

#include <fmt/format.h>

#include <map>

#include "report/plot/svg_frame.h"
#include "report/plot/svg_theme.h"

namespace joulemap::report {

FactorRoles assign_factor_roles(const AnalysisResult& result) {
  FactorRoles roles;
  for (std::size_t i = 0; i < result.factors.size() && !roles.hue_factor; ++i) {
    if (result.factors[i].is_compared && result.factors[i].levels.size() > 1) roles.hue_factor = i;
  }
  for (std::size_t i = 0; i < result.factors.size(); ++i) {
    if (i == roles.hue_factor || result.factors[i].levels.size() < 2) continue;
    if (!roles.group_factor || result.factors[i].levels.size() > result.factors[*roles.group_factor].levels.size())
      roles.group_factor = i;
  }
  return roles;
}

std::vector<Facet> make_facets(const AnalysisResult& result, const FactorRoles& roles) {
  std::map<std::vector<std::size_t>, Facet> facets;
  for (std::size_t cell = 0; cell < result.cells.size(); ++cell) {
    std::vector<std::size_t> key;
    std::string name;
    for (std::size_t i = 0; i < result.factors.size(); ++i) {
      if (i == roles.hue_factor || i == roles.group_factor) continue;
      const std::size_t level = result.cells[cell].levels[i];
      key.push_back(level);
      if (result.factors[i].levels.size() > 1) name += (name.empty() ? "" : ", ") + result.factors[i].levels[level];
    }
    Facet& facet = facets[key];
    facet.name = name;
    facet.cells.push_back(cell);
  }
  std::vector<Facet> facet_list;
  for (auto& [key, facet] : facets) facet_list.push_back(std::move(facet));
  return facet_list;
}

SvgCanvas make_titled_canvas(double height, std::string_view title, std::string_view description) {
  SvgCanvas canvas(kPlotWidth_px, height, title, description);
  canvas.draw_text({kPlotMargin_px, 26}, title, {17, kTextColour, TextAnchor::start, true});
  return canvas;
}

AxisUnit choose_axis_unit(const Measure& measure, double max_value) {
  if (measure.unit == "J" && max_value >= 2e6) return {1e6, "MJ"};
  if (measure.unit == "J" && max_value >= 2e3) return {1e3, "kJ"};
  if (measure.unit == "s" && max_value >= 7200) return {3600, "h"};
  return {1, measure.unit};
}

std::optional<std::size_t> find_measure_of_kind(const AnalysisResult& result, MeasureKind kind) {
  for (std::size_t i = 0; i < result.measures.size(); ++i) {
    if (result.measures[i].kind == kind && result.measures[i].is_compared) return i;
  }
  return std::nullopt;
}

std::string_view cell_colour(const FactorRoles& roles, const AnalysisCell& cell) {
  return palette_colour(roles.hue_factor ? cell.levels[*roles.hue_factor] : 0);
}

void draw_hue_legend(SvgCanvas& canvas, const AnalysisResult& result, const FactorRoles& roles) {
  if (!roles.hue_factor) return;
  std::vector<LegendEntry> entries;
  const std::vector<std::string>& levels = result.factors[*roles.hue_factor].levels;
  for (std::size_t i = 0; i < levels.size() && i < kPalette.size(); ++i)
    entries.push_back({levels[i], palette_colour(i)});
  draw_legend(canvas, {kPlotMargin_px, 36}, kPlotWidth_px - 2 * kPlotMargin_px, entries);
}

std::string cell_label_without_hue(const AnalysisResult& result, const FactorRoles& roles, const AnalysisCell& cell) {
  std::string name;
  for (std::size_t i = 0; i < result.factors.size(); ++i) {
    if (i == roles.hue_factor || result.factors[i].levels.size() < 2) continue;
    name += (name.empty() ? "" : ", ") + result.factors[i].levels[cell.levels[i]];
  }
  return name;
}

}  // namespace joulemap::report
