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

constexpr double kLabelGap_px = 2;  // between a point and its label
constexpr std::array<double, 6> kLabelDistances_px = {0, 8, 16, 26, 38, 52};
constexpr double kListFontSize_px = 11;
constexpr double kListLineHeight_px = 16;
constexpr std::size_t kMaxListColumns = 4;

double overlap_area(const Rect& a, const Rect& b) {
  const double width = std::min(a.right(), b.right()) - std::max(a.x, b.x);
  const double height = std::min(a.bottom(), b.bottom()) - std::max(a.y, b.y);
  return width > 0 && height > 0 ? width * height : 0;
}

// Where a box of this size lies in direction (dx, dy) of the point, at a distance from its rim.
Rect place_label_box(const LabelledPoint& point, double width, double height, Point direction, double distance) {
  const double edge_distance = point.radius + kLabelGap_px + distance;
  const double x = point.centre.x + direction.x * (edge_distance + width / 2);
  const double y = point.centre.y + direction.y * (edge_distance + height / 2);
  return {x - width / 2, y - height / 2, width, height};
}

double area_outside(const Rect& box, const Rect& bounds) { return box.width * box.height - overlap_area(box, bounds); }

std::size_t numbered_list_column_count(std::span<const ListEntry> entries, double width) {
  double max_entry_width = 1;
  for (const ListEntry& entry : entries)
    max_entry_width = std::max(max_entry_width, text_width(entry.text, kListFontSize_px) + 44);
  return std::clamp<std::size_t>(static_cast<std::size_t>(width / max_entry_width), 1, kMaxListColumns);
}

std::size_t numbered_list_line_count(std::span<const ListEntry> entries, double width) {
  const std::size_t columns = numbered_list_column_count(entries, width);
  return (entries.size() + columns - 1) / columns;
}

}  // namespace

std::vector<PlacedLabel> place_labels(std::span<const LabelledPoint> points, double font_size, const Rect& bounds) {
  constexpr double kDiagonalComponent = 0.7;
  constexpr std::array<Point, 8> kLabelDirections = {{{1, 0},
                                                      {-1, 0},
                                                      {0, -1},
                                                      {0, 1},
                                                      {kDiagonalComponent, -kDiagonalComponent},
                                                      {-kDiagonalComponent, -kDiagonalComponent},
                                                      {kDiagonalComponent, kDiagonalComponent},
                                                      {-kDiagonalComponent, kDiagonalComponent}}};
  std::vector<Rect> occupied_areas;
  for (const LabelledPoint& point : points) {
    occupied_areas.push_back(
        {point.centre.x - point.radius, point.centre.y - point.radius, 2 * point.radius, 2 * point.radius});
  }
  std::vector<PlacedLabel> labels;
  for (const LabelledPoint& point : points) {
    const double width = text_width(point.text, font_size);
    const double height = font_size;
    double min_cost = std::numeric_limits<double>::infinity();
    Rect best_box{};
    PlacedLabel label;
    for (const double distance : kLabelDistances_px) {
      for (std::size_t i = 0; i < kLabelDirections.size() && min_cost > 0; ++i) {
        // The first two directions are right and left.
        const Point& direction = kLabelDirections[i < 2 && point.prefers_left ? 1 - i : i];
        const Rect box = place_label_box(point, width, height, direction, distance);
        double cost = area_outside(box, bounds);
        for (const Rect& occupied_area : occupied_areas) cost += overlap_area(box, occupied_area);
        if (cost >= min_cost - 1e-9) continue;
        min_cost = cost;
        best_box = box;
        label.has_leader_line = distance > kLabelDistances_px[1];
      }
    }
    label.is_overlapping = min_cost > 1e-9;
    label.text_position = {best_box.x, best_box.y + 0.8 * height};  // the baseline of digits and capitals
    occupied_areas.push_back(best_box);
    labels.push_back(label);
  }
  return labels;
}

void draw_labels(SvgCanvas& canvas, std::span<const LabelledPoint> points, double font_size, const Rect& bounds) {
  const std::vector<PlacedLabel> labels = place_labels(points, font_size, bounds);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double width = text_width(points[i].text, font_size);
    const Point centre{labels[i].text_position.x + width / 2, labels[i].text_position.y - 0.3 * font_size};
    if (labels[i].has_leader_line) canvas.draw_line(points[i].centre, centre, {kAxisColour, 0.7});
  }
  for (std::size_t i = 0; i < points.size(); ++i)
    canvas.draw_text(labels[i].text_position, points[i].text, {font_size, kTextColour});
}

double numbered_list_height(std::span<const ListEntry> entries, double width) {
  return static_cast<double>(numbered_list_line_count(entries, width)) * kListLineHeight_px;
}

void draw_numbered_list(SvgCanvas& canvas, Point top_left, double width, std::span<const ListEntry> entries) {
  const std::size_t lines = std::max<std::size_t>(1, numbered_list_line_count(entries, width));
  const double column_width = width / static_cast<double>(numbered_list_column_count(entries, width));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const double x = top_left.x + column_width * static_cast<double>(i / lines);
    const double y = top_left.y + kListLineHeight_px * static_cast<double>(i % lines) + 12;
    canvas.draw_text({x + 18, y}, fmt::format("{}", i + 1), {kListFontSize_px, kTextColour, TextAnchor::end, true});
    canvas.draw_circle({x + 26, y - 4}, 3.5, {entries[i].colour});
    canvas.draw_text({x + 34, y}, shorten_to_width(entries[i].text, kListFontSize_px, column_width - 38),
                     {kListFontSize_px, kTextColour});
  }
}

}  // namespace joulemap::report
