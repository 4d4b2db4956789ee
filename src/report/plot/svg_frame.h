// SPDX-License-Identifier: Apache-2.0
//
// Header and footer of every plot. Header: title, command and provenance of the energy. Footer: unattributed energy,
// recording overhead and number of notes. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/run_view.h"
#include "report/plot/svg_canvas.h"

namespace joulemap::report {

struct LegendEntry {
  std::string name;
  std::string_view colour;
};

struct PlotFrame {
  SvgCanvas canvas;
  Rect plot_area;  // plot area
};

// `level`: the level whose idle and unattributed energies the footer shows; null: none.
PlotFrame make_plot_frame(const RunView& view, const LevelView* level, std::string_view title, double height_of_plot);

// Draws the entries in rows from the left; returns the height used.
double draw_legend(SvgCanvas& canvas, Point at, double width, const std::vector<LegendEntry>& entries);

}  // namespace joulemap::report
