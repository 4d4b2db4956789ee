// SPDX-License-Identifier: Apache-2.0
#include "page/power_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "page/page_html.h"

namespace joulemap::page {
namespace {

constexpr double kWidth = 1000;
constexpr double kHeight = 260;
constexpr double kLegend = 24;
constexpr std::array<std::string_view, 6> kColours = {"#1f6fa8", "#c96a12", "#12815f", "#a3508a", "#8a7620", "#6b6d73"};

// Steps, as means over slices are; a gap where nothing is known.
std::string line_of(const std::vector<std::optional<double>>& watts, double most_w) {
  std::string path;
  bool is_open = false;
  const double step = kWidth / static_cast<double>(std::max<std::size_t>(watts.size(), 1));
  for (std::size_t i = 0; i < watts.size(); ++i) {
    if (!watts[i]) {
      is_open = false;
      continue;
    }
    const double y = kLegend + kHeight * (1 - *watts[i] / most_w);
    const double x = step * static_cast<double>(i);
    path += fmt::format("{}{:.1f},{:.1f}H{:.1f}", is_open ? "L" : "M", x, y, x + step);
    is_open = true;
  }
  return path;
}

}  // namespace

std::string power_svg(const ReportResult& run) {
  double most_w = 0;
  for (const PowerSeries& series : run.power) {
    for (const std::optional<double>& watts : series.watts) most_w = std::max(most_w, watts.value_or(0));
  }
  if (most_w <= 0) return "<p>No power is known.</p>\n";
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"Power over {:.4g} s, up to {:.4g} W\">\n", kWidth,
      kLegend + kHeight + 4, run.elapsed_s, most_w);
  for (std::size_t i = 0; i < run.power.size(); ++i) {
    const std::string_view colour = kColours[i % kColours.size()];
    svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\"/>\n", line_of(run.power[i].watts, most_w), colour);
    svg += fmt::format("<text x=\"{:.0f}\" y=\"14\" font-size=\"13\" fill=\"{}\">{}</text>\n",
                       180 * static_cast<double>(i), colour, escaped_html(run.power[i].domain));
  }
  return svg + fmt::format(
                   "<text x=\"{:.0f}\" y=\"14\" font-size=\"13\" text-anchor=\"end\" fill=\"#808080\">"
                   "0 to {:.4g} W, 0 to {:.4g} s</text>\n</svg>\n",
                   kWidth, most_w, run.elapsed_s);
}

}  // namespace joulemap::page
