// SPDX-License-Identifier: Apache-2.0
//
// Labels of the points of a plot: places them so that they cover neither points nor each other, and draws the numbered
// list of the points below a plot. Coordinates in pixels. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/plot/svg_canvas.h"

namespace joulemap::report {

struct LabelledPoint {
  Point centre;
  double radius = 0;
  std::string text;
  bool prefers_left = false;  // for example where a line leaves the point to the right
};

// A label: the start of its baseline. `has_leader_line`: not beside its point, so that a line should connect both.
struct PlacedLabel {
  Point text_position;
  bool has_leader_line = false;
  bool is_overlapping = false;  // there was no free place
};

// Places each label near its point, within `bounds`. The first points have the first choice.
std::vector<PlacedLabel> place_labels(std::span<const LabelledPoint> points, double font_size, const Rect& bounds);

// Draws the labels of the points, with lines to distant ones.
void draw_labels(SvgCanvas& canvas, std::span<const LabelledPoint> points, double font_size, const Rect& bounds);

struct ListEntry {
  std::string text;
  std::string_view colour;
};
// Height of the list "1 text, 2 text ..." in columns, and the list with its top left corner at `top_left`.
double numbered_list_height(std::span<const ListEntry> entries, double width);
void draw_numbered_list(SvgCanvas& canvas, Point top_left, double width, std::span<const ListEntry> entries);

}  // namespace joulemap::report
