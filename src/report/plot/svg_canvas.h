// SPDX-License-Identifier: Apache-2.0
//
// SvgCanvas: builds an SVG picture from back to front. The same calls give the same bytes everywhere: at most two
// decimals, no dependence on locale, clock or addresses. Untrusted texts are escaped. Owned by one plot; pure. Lengths
// and font sizes are CSS pixels; y grows downwards.
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
  std::string_view dash = {};  // "4 3"
};

struct Fill {
  std::string_view colour = "#1d2733";
  double opacity = 1;
  double radius = 0;            // corner radius of a box
  std::string_view title = {};  // tooltip
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
  // `title` and `description` are for screen readers.
  SvgCanvas(double width, double height, std::string_view title, std::string_view description);

  void rect(const Rect& rect, const Fill& fill);
  void line(Point from, Point to, const Stroke& stroke);
  void polyline(std::span<const Point> points, const Stroke& stroke);
  void polygon(std::span<const Point> points, const Fill& fill);
  void circle(Point centre, double radius, const Fill& fill, const Stroke& edge = {"none", 0});
  // The baseline of the text begins, is centred, or ends at the point.
  void text(Point at, std::string_view text, const SvgTextStyle& style = {});

  double width() const { return width_; }
  double height() const { return height_; }
  std::string finish() &&;

 private:
  double width_;
  double height_;
  std::string out_;
};

// Estimated width of a text in a sans-serif font; rather too large than too small.
double text_width(std::string_view text, double size);
// The text shortened at its centre to fit `width`.
std::string fitted_text(std::string_view text, double size, double width);

}  // namespace joulemap::report
