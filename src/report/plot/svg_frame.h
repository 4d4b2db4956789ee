// SPDX-License-Identifier: Apache-2.0
//
// Header and footer of every plot of a run. Header: title, command, energy and its provenance. Footer: attributed, idle
// and unattributed energy, cost of probing and recording, and the first note. Pure.
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
  Rect plot_area;  // area between header and footer
};

// `level`: the level whose energies the footer shows; null: none.
PlotFrame make_plot_frame(const RunView& view, const LevelView* level, std::string_view title, double height_of_plot);

// Draws the entries from left to right, in as many lines as `width` requires; returns the height used.
double draw_legend(SvgCanvas& canvas, Point top_left, double width, const std::vector<LegendEntry>& entries);

}  // namespace joulemap::report
