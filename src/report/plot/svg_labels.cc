// SPDX-License-Identifier: Apache-2.0
#include "report/plot/svg_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "report/plot/svg_theme.h"

namespace joulemap::report {
namespace {

constexpr double kGap = 2;  // between a point and its label
constexpr std::array<double, 6> kDistances = {0, 8, 16, 26, 38, 52};
constexpr double kListFont = 11;
constexpr double kListLine = 16;
constexpr std::size_t kMaxColumns = 4;

double overlap_of(const Rect& a, const Rect& b) {
  const double width = std::min(a.right(), b.right()) - std::max(a.x, b.x);
  const double height = std::min(a.bottom(), b.bottom()) - std::max(a.y, b.y);
  return width > 0 && height > 0 ? width * height : 0;
}

// Where a box of this size lies in direction (dx, dy) of the point, at a distance from its rim.
Rect box_beside(const LabelledPoint& point, double width, double height, Point direction, double distance) {
  const double reach = point.radius + kGap + distance;
  const double x = point.centre.x + direction.x * (reach + width / 2);
  const double y = point.centre.y + direction.y * (reach + height / 2);
  return {x - width / 2, y - height / 2, width, height};
}

double outside_of(const Rect& box, const Rect& bounds) { return box.width * box.height - overlap_of(box, bounds); }

std::size_t columns_of(std::span<const ListEntry> entries, double width) {
  double widest = 1;
  for (const ListEntry& entry : entries) widest = std::max(widest, text_width(entry.text, kListFont) + 44);
  return std::clamp<std::size_t>(static_cast<std::size_t>(width / widest), 1, kMaxColumns);
}

std::size_t lines_of(std::span<const ListEntry> entries, double width) {
  const std::size_t columns = columns_of(entries, width);
  return (entries.size() + columns - 1) / columns;
}

}  // namespace

std::vector<PlacedLabel> place_labels(std::span<const LabelledPoint> points, double font_size, const Rect& bounds) {
  constexpr double kDiagonal = 0.7;
  constexpr std::array<Point, 8> kDirections = {{{1, 0},
                                                 {-1, 0},
                                                 {0, -1},
                                                 {0, 1},
                                                 {kDiagonal, -kDiagonal},
                                                 {-kDiagonal, -kDiagonal},
                                                 {kDiagonal, kDiagonal},
                                                 {-kDiagonal, kDiagonal}}};
  std::vector<Rect> taken;
  for (const LabelledPoint& point : points) {
    taken.push_back({point.centre.x - point.radius, point.centre.y - point.radius, 2 * point.radius, 2 * point.radius});
  }
  std::vector<PlacedLabel> labels;
  for (const LabelledPoint& point : points) {
    const double width = text_width(point.text, font_size);
    const double height = font_size;
    double least = std::numeric_limits<double>::infinity();
    Rect best{};
    PlacedLabel label;
    for (const double distance : kDistances) {
      for (std::size_t i = 0; i < kDirections.size() && least > 0; ++i) {
        // The first two directions are right and left.
        const Point& direction = kDirections[i < 2 && point.prefers_left ? 1 - i : i];
        const Rect box = box_beside(point, width, height, direction, distance);
        double cost = outside_of(box, bounds);
        for (const Rect& other : taken) cost += overlap_of(box, other);
        if (cost >= least - 1e-9) continue;
        least = cost;
        best = box;
        label.is_distant = distance > kDistances[1];
      }
    }
    label.is_covered = least > 1e-9;
    label.at = {best.x, best.y + 0.8 * height};  // the baseline of digits and capitals
    taken.push_back(best);
    labels.push_back(label);
  }
  return labels;
}

void draw_labels(SvgCanvas& canvas, std::span<const LabelledPoint> points, double font_size, const Rect& bounds) {
  const std::vector<PlacedLabel> labels = place_labels(points, font_size, bounds);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double width = text_width(points[i].text, font_size);
    const Point centre{labels[i].at.x + width / 2, labels[i].at.y - 0.3 * font_size};
    if (labels[i].is_distant) canvas.line(points[i].centre, centre, {kAxisColour, 0.7});
  }
  for (std::size_t i = 0; i < points.size(); ++i) canvas.text(labels[i].at, points[i].text, {font_size, kTextColour});
}

double numbered_list_height(std::span<const ListEntry> entries, double width) {
  return static_cast<double>(lines_of(entries, width)) * kListLine;
}

void draw_numbered_list(SvgCanvas& canvas, Point at, double width, std::span<const ListEntry> entries) {
  const std::size_t lines = std::max<std::size_t>(1, lines_of(entries, width));
  const double column_width = width / static_cast<double>(columns_of(entries, width));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const double x = at.x + column_width * static_cast<double>(i / lines);
    const double y = at.y + kListLine * static_cast<double>(i % lines) + 12;
    canvas.text({x + 18, y}, fmt::format("{}", i + 1), {kListFont, kTextColour, TextAnchor::end, true});
    canvas.circle({x + 26, y - 4}, 3.5, {entries[i].colour});
    canvas.text({x + 34, y}, fitted_text(entries[i].text, kListFont, column_width - 38), {kListFont, kTextColour});
  }
}

}  // namespace joulemap::report
