// SPDX-License-Identifier: Apache-2.0
//
// Shared by the plots of an experiment: assignment of factors to colours, groups and facets; a titled canvas; axis
// units. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/analysis_result.h"
#include "report/plot/svg_canvas.h"

namespace joulemap::report {

// Roles of factors: at most one each for colours and groups; the others form facets.
struct FactorRoles {
  std::optional<std::size_t> hue;
  std::optional<std::size_t> group;
};
FactorRoles factor_roles(const AnalysisResult& result);

struct Facet {
  std::string name;
  std::vector<std::size_t> cells;
};
std::vector<Facet> facets_of(const AnalysisResult& result, const FactorRoles& roles);

// Canvas with a title on top; plots start below kPlotTop.
inline constexpr double kPlotTop = 56;
SvgCanvas titled_canvas(double height, std::string_view title, std::string_view description);

// Readable unit: kJ for thousands of joules. Values are divided by `factor`.
struct AxisUnit {
  double factor = 1;
  std::string text;
};
AxisUnit axis_unit(const Measure& measure, double most);

std::optional<std::size_t> measure_of_kind(const AnalysisResult& result, MeasureKind kind);
std::string_view cell_colour(const FactorRoles& roles, const AnalysisCell& cell);
// Colours of the levels, below the title.
void draw_hue_legend(SvgCanvas& canvas, const AnalysisResult& result, const FactorRoles& roles);
// All levels except the one shown by colour.
std::string cell_label_without_hue(const AnalysisResult& result, const FactorRoles& roles, const AnalysisCell& cell);

}  // namespace joulemap::report
