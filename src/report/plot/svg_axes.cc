// SPDX-License-Identifier: Apache-2.0
#include "report/plot/svg_axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/plot/svg_theme.h"

namespace joulemap::report {
namespace {

double round_tick_step(double low, double high, int target_tick_count) {
  const double unrounded_step = (high - low) / std::max(target_tick_count, 1);
  if (!(unrounded_step > 0) || !std::isfinite(unrounded_step)) return 1;
  const double power = std::pow(10.0, std::floor(std::log10(unrounded_step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= unrounded_step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

constexpr double kTickFontSize_px = 12;

}  // namespace

std::vector<double> round_ticks(double low, double high, int target_tick_count) {
  std::vector<double> ticks;
  const double step = round_tick_step(low, high, target_tick_count);
  const double first_multiple = std::ceil(low / step - 1e-9);
  for (double i = first_multiple; i * step <= high + 1e-9 * step && ticks.size() < 100; ++i) ticks.push_back(i * step);
  return ticks;
}

ValueRange range_with_round_ends(double low, double high, int target_tick_count) {
  const double step = round_tick_step(low, high, target_tick_count);
  return {std::floor(low / step + 1e-9) * step, std::ceil(high / step - 1e-9) * step};
}

std::string tick_label(double value, double step) {
  if (std::abs(value) < step * 1e-6) return "0";
  const bool is_thousands = std::abs(value) >= 10'000 && step >= 100;
  const double unit = is_thousands ? 1000 : 1;
  const double step_in_units = step / unit;
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step_in_units) - 1e-9)), 0, 9);
  return fmt::format("{:.{}f}{}", value / unit, decimals, is_thousands ? "k" : "");
}

void draw_y_axis(SvgCanvas& canvas, const PlotAxes& axes, std::string_view title, int target_tick_count) {
  const std::vector<double> ticks = round_ticks(axes.y.low_value, axes.y.high_value, target_tick_count);
  const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : 1;
  double max_label_width = 0;
  for (const double tick : ticks) {
    const double y = axes.y.at(tick);
    const std::string label = tick_label(tick, step);
    max_label_width = std::max(max_label_width, text_width(label, kTickFontSize_px));
    canvas.draw_line({axes.plot_area.x, y}, {axes.plot_area.right(), y}, {tick == 0 ? kAxisColour : kGridColour, 1});
    canvas.draw_text({axes.plot_area.x - 8, y + 4}, label, {kTickFontSize_px, kMutedTextColour, TextAnchor::end});
  }
  canvas.draw_text({axes.plot_area.x - 8 - max_label_width - 12, axes.plot_area.y + axes.plot_area.height / 2}, title,
                   {kTickFontSize_px, kMutedTextColour, TextAnchor::middle, false, -90});
}

void draw_x_axis(SvgCanvas& canvas, const PlotAxes& axes, std::string_view title, int target_tick_count,
                 bool has_lines) {
  const std::vector<double> ticks = round_ticks(axes.x.low_value, axes.x.high_value, target_tick_count);
  const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : 1;
  const double y = axes.plot_area.bottom();
  for (const double tick : ticks) {
    const double x = axes.x.at(tick);
    canvas.draw_line({x, has_lines ? axes.plot_area.y : y}, {x, y + 4}, {has_lines ? kGridColour : kAxisColour, 1});
    canvas.draw_text({x, y + 18}, tick_label(tick, step), {kTickFontSize_px, kMutedTextColour, TextAnchor::middle});
  }
  canvas.draw_line({axes.plot_area.x, y}, {axes.plot_area.right(), y}, {kAxisColour, 1});
  canvas.draw_text({axes.plot_area.x + axes.plot_area.width / 2, y + 38}, title,
                   {kTickFontSize_px, kMutedTextColour, TextAnchor::middle});
}

std::vector<double> logarithmic_ticks(const AxisScale& scale) {
  constexpr double kMaxDecadesForMinorTicks = 2.5;  // decades
  constexpr double kMinDecadesForRoundTicks = 0.5;  // below, an axis could lie between two round numbers
  std::vector<double> ticks;
  if (scale.high_value - scale.low_value < kMinDecadesForRoundTicks) {
    for (const double value : round_ticks(std::pow(10, scale.low_value), std::pow(10, scale.high_value), 4))
      ticks.push_back(std::log10(value));
    return ticks;
  }
  for (double power = std::floor(scale.low_value); power <= scale.high_value; ++power) {
    for (const double mantissa : {1.0, 2.0, 5.0}) {
      const double value = power + std::log10(mantissa);
      const bool is_wanted = mantissa == 1 || scale.high_value - scale.low_value < kMaxDecadesForMinorTicks;
      if (is_wanted && value >= scale.low_value && value <= scale.high_value) ticks.push_back(value);
    }
  }
  return ticks;
}

}  // namespace joulemap::report
