// SPDX-License-Identifier: Apache-2.0
#include "report/plot/svg_canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/text/text_style.h"

namespace joulemap::report {
namespace {

constexpr std::string_view kFontFamily =
    "Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";

// A number with at most two decimals; never "-0", and "0" if it is not finite.
std::string format_decimal(double value) {
  if (!std::isfinite(value)) return "0";
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string escape_xml(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string svg_fill_attributes(const Fill& fill) {
  std::string out = fmt::format(" fill=\"{}\"", fill.colour);
  if (fill.opacity < 1) out += fmt::format(" fill-opacity=\"{}\"", format_decimal(fill.opacity));
  if (fill.corner_radius > 0) out += fmt::format(" rx=\"{}\"", format_decimal(fill.corner_radius));
  return out;
}

std::string svg_stroke_attributes(const Stroke& stroke) {
  std::string out = fmt::format(" stroke=\"{}\" stroke-width=\"{}\"", stroke.colour, format_decimal(stroke.width));
  if (!stroke.dash_pattern.empty()) out += fmt::format(" stroke-dasharray=\"{}\"", stroke.dash_pattern);
  return out;
}

std::string points_attribute(std::span<const Point> points) {
  std::string out;
  for (const Point& point : points)
    out += fmt::format("{}{},{}", out.empty() ? "" : " ", format_decimal(point.x), format_decimal(point.y));
  return out;
}

std::string closing_svg_tag(std::string_view element, const Fill& fill) {
  return fill.tooltip.empty() ? "/>\n" : fmt::format("><title>{}</title></{}>\n", escape_xml(fill.tooltip), element);
}

constexpr double kNarrowestCharacterWidth_em = 0.34;

double character_width(char c) {
  constexpr std::string_view kNarrowCharacters = "iljtfrI.,:;|!'()[]{} -/";
  constexpr std::string_view kWideCharacters = "mwMW%@";
  if (kNarrowCharacters.find(c) != kNarrowCharacters.npos) return kNarrowestCharacterWidth_em;
  if (kWideCharacters.find(c) != kWideCharacters.npos) return 0.9;
  return c >= 'A' && c <= 'Z' ? 0.7 : 0.58;
}

}  // namespace

SvgCanvas::SvgCanvas(double width, double height, std::string_view title, std::string_view description)
    : width_(width), height_(height) {
  svg_text_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" "
      "aria-label=\"{3}\" font-family=\"{2}\">\n<title>{3}</title>\n<desc>{4}</desc>\n",
      format_decimal(width), format_decimal(height), kFontFamily, escape_xml(title), escape_xml(description));
  draw_rect({0, 0, width, height}, {"#ffffff"});
}

void SvgCanvas::draw_rect(const Rect& rect, const Fill& fill) {
  if (rect.width <= 0 || rect.height <= 0) return;
  svg_text_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}", format_decimal(rect.x),
                           format_decimal(rect.y), format_decimal(rect.width), format_decimal(rect.height),
                           svg_fill_attributes(fill)) +
               closing_svg_tag("rect", fill);
}

void SvgCanvas::draw_line(Point start_point, Point end_point, const Stroke& stroke) {
  svg_text_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"{}/>\n", format_decimal(start_point.x),
                           format_decimal(start_point.y), format_decimal(end_point.x), format_decimal(end_point.y),
                           svg_stroke_attributes(stroke));
}

void SvgCanvas::draw_polyline(std::span<const Point> points, const Stroke& stroke) {
  if (points.size() < 2) return;
  svg_text_ +=
      fmt::format("<polyline points=\"{}\" fill=\"none\" stroke-linejoin=\"round\" stroke-linecap=\"round\"{}/>\n",
                  points_attribute(points), svg_stroke_attributes(stroke));
}

void SvgCanvas::draw_polygon(std::span<const Point> points, const Fill& fill) {
  if (points.size() < 3) return;
  svg_text_ += fmt::format("<polygon points=\"{}\"{}", points_attribute(points), svg_fill_attributes(fill)) +
               closing_svg_tag("polygon", fill);
}

void SvgCanvas::draw_circle(Point centre, double radius, const Fill& fill, const Stroke& edge) {
  svg_text_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{}{}", format_decimal(centre.x),
                           format_decimal(centre.y), format_decimal(radius), svg_fill_attributes(fill),
                           edge.width > 0 ? svg_stroke_attributes(edge) : "") +
               closing_svg_tag("circle", fill);
}

void SvgCanvas::draw_text(Point anchor_point, std::string_view text, const SvgTextStyle& style) {
  if (text.empty()) return;
  const std::string_view anchor = style.anchor == TextAnchor::middle ? " text-anchor=\"middle\""
                                  : style.anchor == TextAnchor::end  ? " text-anchor=\"end\""
                                                                     : "";
  svg_text_ += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\"{}{}", format_decimal(anchor_point.x),
                           format_decimal(anchor_point.y), format_decimal(style.size), style.colour, anchor,
                           style.is_bold ? " font-weight=\"600\"" : "");
  if (style.rotation != 0) {
    svg_text_ += fmt::format(" transform=\"rotate({} {} {})\"", format_decimal(style.rotation),
                             format_decimal(anchor_point.x), format_decimal(anchor_point.y));
  }
  svg_text_ += fmt::format(">{}</text>\n", escape_xml(text));
}

std::string SvgCanvas::finish() && { return std::move(svg_text_) + "</svg>\n"; }

double text_width(std::string_view text, double size) {
  double sum = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) sum += character_width(c);
  }
  return sum * size;
}

std::string shorten_to_width(std::string_view text, double size, double width) {
  if (text_width(text, size) <= width) return std::string(text);
  // Cuts a long text to the most characters that could fit, so that the loop is short.
  const auto max_columns = static_cast<std::size_t>(std::max(width, 0.0) / (kNarrowestCharacterWidth_em * size)) + 1;
  const std::string ends = shorten_at_centre(text, max_columns);
  for (std::size_t columns = std::min(count_display_columns(ends), max_columns); columns > 2; --columns) {
    std::string shortened_text = shorten_to_columns(ends, columns);
    if (text_width(shortened_text, size) <= width) return shortened_text;
  }
  return {};
}

}  // namespace joulemap::report
