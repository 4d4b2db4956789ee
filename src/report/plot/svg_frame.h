// SPDX-License-Identifier: Apache-2.0
//
// What stands around every plot: a title, what was run and how its energy was told above it; below it what is
// nobody's, what recording cost and how many notes there are, so that no picture says more than is known. Pure.
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

struct Frame {
  SvgCanvas canvas;
  Box inside;  // where the plot may draw
};

// `level`: whose idle and unattributed energies are told; nothing: those of no level.
Frame framed(const RunView& view, const LevelView* level, std::string_view title, double height_of_plot);

// In a row from the left; returns the height that was used.
double draw_legend(SvgCanvas& canvas, Point at, double width, const std::vector<LegendEntry>& entries);

}  // namespace joulemap::report
