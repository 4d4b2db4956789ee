// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "model/activity.h"
#include "report/plot/plots.h"
#include "report/plot/svg_axes.h"
#include "report/plot/svg_frame.h"
#include "report/plot/svg_theme.h"
#include "report/text/energy_rows.h"
#include "scopes/path_tree.h"

namespace joulemap::report {
namespace {

constexpr double kHeatmapRowHeight_px = 20;
constexpr double kHeatmapNamesWidth_px = 280;
constexpr std::size_t kDefaultHeatmapLayers = 40;

struct LayerEnergies {
  double energy_j = 0;
  std::map<std::string, double> energy_by_phase_j;  // joules
};

// Sums the rows by layer, the last element of the path, and by phase, the element before it.
std::map<std::string, LayerEnergies> sum_layer_energies(const LevelView& level, const std::string& filter) {
  std::map<std::string, LayerEnergies> layers;
  for (const ReportRow& row : level.rows) {
    if (!row.energy_j || row.path.empty() || row.path.front() == kProbeModeScopeName) continue;
    if (!scopes::path_matches_filter(row.path, row.device, filter)) continue;
    const std::string phase = row.path.size() > 1 ? row.path[row.path.size() - 2] : row.device;
    LayerEnergies& layer = layers[row.path.back()];
    layer.energy_j += *row.energy_j;
    layer.energy_by_phase_j[phase] += *row.energy_j;
  }
  return layers;
}

// Compares names with numbers by value: "layer2" before "layer10".
bool is_before_in_natural_order(const std::string& a, const std::string& b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0;
  std::size_t k = 0;
  while (i < a.size() && k < b.size()) {
    if (is_digit(a[i]) && is_digit(b[k])) {
      const std::size_t digits_end_a = std::min(a.find_first_not_of("0123456789", i), a.size());
      const std::size_t digits_end_b = std::min(b.find_first_not_of("0123456789", k), b.size());
      if (digits_end_a - i != digits_end_b - k) return digits_end_a - i < digits_end_b - k;
      const int order = a.compare(i, digits_end_a - i, b, k, digits_end_b - k);
      if (order != 0) return order < 0;
      i = digits_end_a;
      k = digits_end_b;
      continue;
    }
    if (a[i] != b[k]) return a[i] < b[k];
    ++i;
    ++k;
  }
  return a.size() < b.size();
}

// Colour of a share from 0 (nearly white) to 1 (dark blue).
std::string heatmap_colour(double share) {
  constexpr std::array<std::array<double, 3>, 4> kColourStops = {
      {{247, 250, 253}, {158, 202, 225}, {49, 130, 189}, {8, 48, 107}}};
  const double position = std::clamp(share, 0.0, 1.0) * (kColourStops.size() - 1);
  const auto lower_stop_index = std::min(static_cast<std::size_t>(position), kColourStops.size() - 2);
  std::string out = "#";
  for (std::size_t i = 0; i < 3; ++i) {
    const double mixed_colour = kColourStops[lower_stop_index][i] +
                                (position - static_cast<double>(lower_stop_index)) *
                                    (kColourStops[lower_stop_index + 1][i] - kColourStops[lower_stop_index][i]);
    out += fmt::format("{:02x}", static_cast<int>(std::lround(mixed_colour)));
  }
  return out;
}

struct HeatmapTable {
  std::vector<std::string> layers;
  std::vector<std::string> phases;
  double highest_j = 0;
};

HeatmapTable make_heatmap_table(const std::map<std::string, LayerEnergies>& layers, std::size_t max_layers) {
  std::vector<std::pair<double, std::string>> by_energy;
  for (const auto& [name, layer] : layers) by_energy.emplace_back(layer.energy_j, name);
  std::sort(by_energy.rbegin(), by_energy.rend());
  by_energy.resize(std::min(by_energy.size(), max_layers));
  HeatmapTable table;
  std::map<std::string, double> phases;
  for (const auto& [energy_j, name] : by_energy) {
    table.layers.push_back(name);
    for (const auto& [phase, joules] : layers.at(name).energy_by_phase_j) {
      phases[phase] += joules;
      table.highest_j = std::max(table.highest_j, joules);
    }
  }
  std::sort(table.layers.begin(), table.layers.end(), is_before_in_natural_order);
  for (const auto& [phase, joules] : phases) table.phases.push_back(phase);
  const auto rank = [](const std::string& phase) { return phase == "forward" ? 0 : phase == "backward" ? 1 : 2; };
  std::stable_sort(table.phases.begin(), table.phases.end(),
                   [&](const std::string& a, const std::string& b) { return rank(a) < rank(b); });
  return table;
}

void draw_colour_scale(SvgCanvas& canvas, const Rect& rect, double highest_j) {
  constexpr int kColourScaleSteps = 48;
  for (int i = 0; i < kColourScaleSteps; ++i) {
    const double height = rect.height / kColourScaleSteps;
    const std::string colour = heatmap_colour(1 - (i + 0.5) / kColourScaleSteps);
    canvas.draw_rect({rect.x, rect.y + i * height, rect.width, height + 0.4}, {colour});
  }
  const AxisScale scale{0, highest_j, rect.bottom(), rect.y};
  const std::vector<double> ticks = round_ticks(0, highest_j, 4);
  const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : 1;
  for (const double tick : ticks)
    canvas.draw_text({rect.right() + 6, scale.at(tick) + 4}, tick_label(tick, step) + " J", {11, kMutedTextColour});
}

}  // namespace

Result<std::string> heatmap_svg(const RunView& view, const PlotQuery& query) {
  const LevelView* const level = find_level(view, query.by);
  if (level == nullptr) return nothing_to_plot_error("no layers", "record a program that uses PyTorch, Keras or JAX");
  const std::map<std::string, LayerEnergies> layers = sum_layer_energies(*level, query.name_filter);
  if (layers.empty())
    return nothing_to_plot_error("no energy of layers", "run joulemap report --by layer for the reason");
  const HeatmapTable table = make_heatmap_table(layers, query.max_items.value_or(kDefaultHeatmapLayers));
  const double height = kHeatmapRowHeight_px * static_cast<double>(table.layers.size()) + 46;
  PlotFrame frame = make_plot_frame(view, level, "Energy of layers by phase", height);
  const double cell_width = std::clamp(
      (frame.plot_area.width - kHeatmapNamesWidth_px - 110) / static_cast<double>(table.phases.size()), 60.0, 190.0);
  const double left_x = frame.plot_area.x + kHeatmapNamesWidth_px;
  const double top = frame.plot_area.y + 30;
  for (std::size_t k = 0; k < table.phases.size(); ++k) {
    const double centre_x = left_x + (static_cast<double>(k) + 0.5) * cell_width;
    frame.canvas.draw_text({centre_x, top - 9}, shorten_to_width(table.phases[k], 12, cell_width - 4),
                           {12, kTextColour, TextAnchor::middle, true});
  }
  for (std::size_t i = 0; i < table.layers.size(); ++i) {
    const double y = top + kHeatmapRowHeight_px * static_cast<double>(i);
    frame.canvas.draw_text({left_x - 10, y + 14}, shorten_to_width(table.layers[i], 12, kHeatmapNamesWidth_px - 14),
                           {12, kTextColour, TextAnchor::end});
    for (std::size_t k = 0; k < table.phases.size(); ++k) {
      const auto& by_phase = layers.at(table.layers[i]).energy_by_phase_j;
      const auto phase_energy = by_phase.find(table.phases[k]);
      if (phase_energy == by_phase.end()) continue;
      const double share = table.highest_j > 0 ? phase_energy->second / table.highest_j : 0;
      const std::string colour = heatmap_colour(share);
      const double x = left_x + static_cast<double>(k) * cell_width;
      const std::string title =
          fmt::format("{} {}: {} J", table.phases[k], table.layers[i], format_number(phase_energy->second));
      frame.canvas.draw_rect({x + 1, y + 1, cell_width - 2, kHeatmapRowHeight_px - 2}, {colour, 1, 2, title});
      frame.canvas.draw_text({x + cell_width / 2, y + 14}, format_number(phase_energy->second, 3),
                             {11, share > 0.58 ? std::string_view("#ffffff") : kTextColour, TextAnchor::middle});
    }
  }
  draw_colour_scale(frame.canvas, {frame.plot_area.right() - 70, top, 14, std::min(height - 46, 240.0)},
                    table.highest_j);
  return std::move(frame.canvas).finish();
}

}  // namespace joulemap::report
