// SPDX-License-Identifier: Apache-2.0
#include "report/plot/svg_canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/text/text_style.h"

namespace joulemap::report {
namespace {

constexpr std::string_view kFont =
    "Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";

// A number with at most two decimals; never "-0", and "0" if it is not finite.
std::string decimal(double value) {
  if (!std::isfinite(value)) return "0";
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string escaped(std::string_view text) {
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

std::string fill_text(const Fill& fill) {
  std::string out = fmt::format(" fill=\"{}\"", fill.colour);
  if (fill.opacity < 1) out += fmt::format(" fill-opacity=\"{}\"", decimal(fill.opacity));
  if (fill.radius > 0) out += fmt::format(" rx=\"{}\"", decimal(fill.radius));
  return out;
}

std::string stroke_text(const Stroke& stroke) {
  std::string out = fmt::format(" stroke=\"{}\" stroke-width=\"{}\"", stroke.colour, decimal(stroke.width));
  if (!stroke.dash.empty()) out += fmt::format(" stroke-dasharray=\"{}\"", stroke.dash);
  return out;
}

std::string points_text(std::span<const Point> points) {
  std::string out;
  for (const Point& point : points)
    out += fmt::format("{}{},{}", out.empty() ? "" : " ", decimal(point.x), decimal(point.y));
  return out;
}

std::string end_of(std::string_view element, const Fill& fill) {
  return fill.title.empty() ? "/>\n" : fmt::format("><title>{}</title></{}>\n", escaped(fill.title), element);
}

constexpr double kNarrowest = 0.34;

double character_width(char c) {
  constexpr std::string_view kNarrow = "iljtfrI.,:;|!'()[]{} -/";
  constexpr std::string_view kWide = "mwMW%@";
  if (kNarrow.find(c) != kNarrow.npos) return kNarrowest;
  if (kWide.find(c) != kWide.npos) return 0.9;
  return c >= 'A' && c <= 'Z' ? 0.7 : 0.58;
}

}  // namespace

SvgCanvas::SvgCanvas(double width, double height, std::string_view title, std::string_view description)
    : width_(width), height_(height) {
  out_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" "
      "aria-labelledby=\"title description\" font-family=\"{2}\">\n<title id=\"title\">{3}</title>\n"
      "<desc id=\"description\">{4}</desc>\n",
      decimal(width), decimal(height), kFont, escaped(title), escaped(description));
  rect({0, 0, width, height}, {"#ffffff"});
}

void SvgCanvas::rect(const Rect& rect, const Fill& fill) {
  if (rect.width <= 0 || rect.height <= 0) return;
  out_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}", decimal(rect.x), decimal(rect.y),
                      decimal(rect.width), decimal(rect.height), fill_text(fill)) +
          end_of("rect", fill);
}

void SvgCanvas::line(Point from, Point to, const Stroke& stroke) {
  out_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"{}/>\n", decimal(from.x), decimal(from.y),
                      decimal(to.x), decimal(to.y), stroke_text(stroke));
}

void SvgCanvas::polyline(std::span<const Point> points, const Stroke& stroke) {
  if (points.size() < 2) return;
  out_ += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke-linejoin=\"round\" stroke-linecap=\"round\"{}/>\n",
                      points_text(points), stroke_text(stroke));
}

void SvgCanvas::polygon(std::span<const Point> points, const Fill& fill) {
  if (points.size() < 3) return;
  out_ += fmt::format("<polygon points=\"{}\"{}", points_text(points), fill_text(fill)) + end_of("polygon", fill);
}

void SvgCanvas::circle(Point centre, double radius, const Fill& fill, const Stroke& edge) {
  out_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{}{}", decimal(centre.x), decimal(centre.y), decimal(radius),
                      fill_text(fill), edge.width > 0 ? stroke_text(edge) : "") +
          end_of("circle", fill);
}

void SvgCanvas::text(Point at, std::string_view text, const SvgTextStyle& style) {
  if (text.empty()) return;
  const std::string_view anchor = style.anchor == TextAnchor::middle ? " text-anchor=\"middle\""
                                  : style.anchor == TextAnchor::end  ? " text-anchor=\"end\""
                                                                     : "";
  out_ += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\"{}{}", decimal(at.x), decimal(at.y),
                      decimal(style.size), style.colour, anchor, style.is_bold ? " font-weight=\"600\"" : "");
  if (style.rotation != 0) {
    out_ += fmt::format(" transform=\"rotate({} {} {})\"", decimal(style.rotation), decimal(at.x), decimal(at.y));
  }
  out_ += fmt::format(">{}</text>\n", escaped(text));
}

std::string SvgCanvas::finish() && { return std::move(out_) + "</svg>\n"; }

double text_width(std::string_view text, double size) {
  double sum = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) sum += character_width(c);
  }
  return sum * size;
}

std::string fitted_text(std::string_view text, double size, double width) {
  if (text_width(text, size) <= width) return std::string(text);
  // Cuts a long text to the most characters that could fit, so that the loop is short.
  const auto most = static_cast<std::size_t>(std::max(width, 0.0) / (kNarrowest * size)) + 1;
  const std::string ends = keep_both_ends(text, most);
  for (std::size_t columns = std::min(display_columns(ends), most); columns > 2; --columns) {
    std::string shorter = shortened(ends, columns);
    if (text_width(shorter, size) <= width) return shorter;
  }
  return {};
}

}  // namespace joulemap::report
