// SPDX-License-Identifier: Apache-2.0
//
// Functions shared by the plots of an experiment: assignment of factors to colours, groups and facets, a canvas with a
// title, and axis units. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/analysis_result.h"
#include "report/plot/svg_canvas.h"

namespace joulemap::report {

// Indices of the factor that colours show and of the factor that forms groups; none without such a factor. Combinations
// of the other factors form facets.
struct FactorRoles {
  std::optional<std::size_t> hue_factor;
  std::optional<std::size_t> group_factor;
};
// Colours: the first compared factor with several levels. Groups: the factor with the most levels among the others.
FactorRoles assign_factor_roles(const AnalysisResult& result);

// The cells of one small plot: those with the same levels of the factors without a role.
struct Facet {
  std::string name;
  std::vector<std::size_t> cells;
};
std::vector<Facet> make_facets(const AnalysisResult& result, const FactorRoles& roles);

// A canvas with a title on top. The plot begins at y = kPlotTop_px.
inline constexpr double kPlotTop_px = 56;
SvgCanvas make_titled_canvas(double height, std::string_view title, std::string_view description);

// Unit of an axis, such as kJ for thousands of joules. Values are divided by `unit_factor`.
struct AxisUnit {
  double unit_factor = 1;
  std::string unit_text;
};
AxisUnit choose_axis_unit(const Measure& measure, double max_value);

// Index of the first compared measure of this kind; none if there is none.
std::optional<std::size_t> find_measure_of_kind(const AnalysisResult& result, MeasureKind kind);
std::string_view cell_colour(const FactorRoles& roles, const AnalysisCell& cell);
// Draws the legend of colours below the title; nothing if no factor is shown by colours.
void draw_hue_legend(SvgCanvas& canvas, const AnalysisResult& result, const FactorRoles& roles);
// The levels of a cell, without the level that the colour shows and without factors that have one level.
std::string cell_label_without_hue(const AnalysisResult& result, const FactorRoles& roles, const AnalysisCell& cell);

}  // namespace joulemap::report
