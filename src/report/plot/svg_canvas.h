// SPDX-License-Identifier: Apache-2.0
//
// SvgCanvas: builds an SVG picture. Later elements cover earlier ones. The same calls give the same bytes, independent
// of locale and platform. Escapes texts. Owned by one plot. Lengths and font sizes are CSS pixels; y grows downwards.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace joulemap::report {

struct Point {
  double x = 0;
  double y = 0;
};

struct Rect {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;

  double right() const { return x + width; }
  double bottom() const { return y + height; }
};

struct Stroke {
  std::string_view colour = "#1d2733";
  double width = 1;
  std::string_view dash_pattern = {};  // lengths of dashes and gaps: "4 3"; empty: a solid line
};

struct Fill {
  std::string_view colour = "#1d2733";
  double opacity = 1;
  double corner_radius = 0;       // corner radius of a rectangle
  std::string_view tooltip = {};  // tooltip
};

enum class TextAnchor { start, middle, end };

struct SvgTextStyle {
  double size = 12;
  std::string_view colour = "#1d2733";
  TextAnchor anchor = TextAnchor::start;
  bool is_bold = false;
  double rotation = 0;  // degrees, clockwise
};

class SvgCanvas {
 public:
  // `tooltip` and `description` are for screen readers.
  SvgCanvas(double width, double height, std::string_view title, std::string_view description);

  void draw_rect(const Rect& rect, const Fill& fill);
  void draw_line(Point start_point, Point end_point, const Stroke& stroke);
  void draw_polyline(std::span<const Point> points, const Stroke& stroke);
  void draw_polygon(std::span<const Point> points, const Fill& fill);
  void draw_circle(Point centre, double radius, const Fill& fill, const Stroke& edge = {"none", 0});
  // The point is the start, centre or end of the baseline, as style.anchor selects.
  void draw_text(Point anchor_point, std::string_view text, const SvgTextStyle& style = {});

  double width() const { return width_; }
  double height() const { return height_; }
  std::string finish() &&;

 private:
  double width_;
  double height_;
  std::string svg_text_;
};

// Estimated width of a text in a sans-serif font of this size; an overestimate rather than an underestimate.
double text_width(std::string_view text, double size);
// The text, shortened at its centre to fit `width`. Empty if even three characters do not fit.
std::string shorten_to_width(std::string_view text, double size, double width);

}  // namespace joulemap::report
