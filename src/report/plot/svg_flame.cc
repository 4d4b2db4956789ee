// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/background_row.h"
#include "report/plot/plots.h"
#include "report/plot/svg_frame.h"
#include "report/plot/svg_theme.h"
#include "report/text/energy_rows.h"
#include "report/text/energy_tree.h"
#include "report/text/kernel_names.h"
#include "report/text/text_style.h"

namespace joulemap::report {
namespace {

constexpr double kFlameRowHeight_px = 26;
constexpr double kMinFrameWidth_px = 0.6;  // px; narrower boxes only add bytes

std::size_t visible_depth(const EnergyNode& node, double min_energy_j) {
  std::size_t max_depth = 0;
  for (const EnergyNode& child : node.children) {
    if (child.summed_row.energy_j.value_or(0) >= min_energy_j)
      max_depth = std::max(max_depth, 1 + visible_depth(child, min_energy_j));
  }
  return max_depth;
}

// The phase that the name of a branch contains ("train backward" is backward), or else that of the enclosing branch.
std::string phase_of_node(const std::string& name, const std::string& parent_phase) {
  for (const char* phase :
       {"forward", "backward", "optimizer", "dataloader", "loss", "gradients", "recompute", "probe"}) {
    const std::string_view known(phase);
    if (name == known || name.ends_with(" " + std::string(known)) || name.starts_with(std::string(known) + " ") ||
        name.find(" " + std::string(known) + " ") != std::string::npos)
      return phase;
  }
  return parent_phase;
}

class FlameGraphDrawer {
 public:
  FlameGraphDrawer(SvgCanvas& canvas, double total_j, double width, bool are_kernels)
      : canvas_(canvas), total_j_(total_j), width_px_(width), has_kernel_leaves_(are_kernels) {}

  double frame_width_px(double energy_j) const { return total_j_ > 0 ? energy_j / total_j_ * width_px_ : 0; }

  void draw_node(const EnergyNode& node, Point top_left, const std::string& outer_phase, std::string_view colour,
                 double opacity) {
    const double energy_j = node.summed_row.energy_j.value_or(0);
    const double width = frame_width_px(energy_j);
    if (width < kMinFrameWidth_px) return;
    const std::string phase = phase_of_node(node.name, outer_phase);
    if (phase != outer_phase) {
      colour = colour_of_phase(phase);
      opacity = 1;
    }
    const std::string name = has_kernel_leaves_ ? brief_kernel_name(node.name, 60) : printable(node.name);
    canvas_.draw_rect({top_left.x, top_left.y, std::max(width - 1, 0.4), kFlameRowHeight_px - 2},
                      {colour, opacity, 2, frame_tooltip(name, node, energy_j)});
    const std::string name_with_energy = fmt::format("{}  {} J", name, format_number(energy_j, 3));
    const bool fits = text_width(name_with_energy, 11) <= width - 10;
    const std::string_view text_colour = is_dark_colour(colour, opacity) ? std::string_view("#ffffff") : kTextColour;
    const std::string shortened_text = fits ? name_with_energy : shorten_to_width(name, 11, width - 9);
    const bool is_informative =
        count_display_columns(shortened_text) >= std::min<std::size_t>(count_display_columns(name), 6);
    if (is_informative) canvas_.draw_text({top_left.x + 5, top_left.y + 16}, shortened_text, {11, text_colour});
    double x = top_left.x;
    for (const EnergyNode& child : node.children) {
      draw_node(child, {x, top_left.y + kFlameRowHeight_px}, phase, colour, std::max(opacity * 0.86, 0.3));
      x += frame_width_px(child.summed_row.energy_j.value_or(0));
    }
  }

 private:
  std::string frame_tooltip(const std::string& name, const EnergyNode& node, double energy_j) const {
    std::string title = fmt::format("{}: {} J, {}", name, format_number(energy_j), percent_text(energy_j / total_j_));
    if (node.summed_row.low_j && node.summed_row.high_j)
      title += fmt::format(" (90 %: {} to {} J)", format_number(*node.summed_row.low_j),
                           format_number(*node.summed_row.high_j));
    if (node.summed_row.power_w) title += fmt::format(", {} W", format_number(*node.summed_row.power_w, 3));
    return title;
  }
  static bool is_dark_colour(std::string_view colour, double opacity) {
    return opacity > 0.7 && colour != kUnattributedColour && colour != kPalette[4] && colour != kPalette[5];
  }

  SvgCanvas& canvas_;
  double total_j_;
  double width_px_;
  bool has_kernel_leaves_;
};

}  // namespace

Result<std::string> flame_svg(const RunView& view, const PlotQuery& query) {
  const LevelView* const level = find_level(view, query.by);
  if (level == nullptr || !level->attributed_j)
    return nothing_to_plot_error("no energy of layers", "run joulemap report --by layer for the reason");
  ReportResult result = make_level_report(view, *level);
  if (!query.name_filter.empty()) result.groups.clear();  // sums of all rows, also of those that do not match
  const bool is_whole = query.name_filter.empty();
  const bool is_probed = is_whole && result.probe.has_value();  // not part of the run; the footer shows its cost
  EnergyNode root = energy_tree(is_probed ? exclude_probing(result) : result, {{}, query.name_filter});
  if (is_whole) {
    for (EnergyNode& node : idle_and_unattributed_without_probing(result)) root.children.push_back(std::move(node));
  }
  double total_j = 0;
  for (const EnergyNode& child : root.children) total_j += child.summed_row.energy_j.value_or(0);
  if (!(total_j > 0)) return nothing_to_plot_error("no energy in rows that match --filter", "use another --filter");
  const double width = kPlotWidth_px - 2 * kPlotMargin_px;
  const std::size_t levels = 1 + visible_depth(root, total_j * kMinFrameWidth_px / width);
  PlotFrame frame = make_plot_frame(view, level,
                                    fmt::format("Flame graph of {} J, by {}{}", format_number(total_j), level->by,
                                                is_probed ? ", without probing" : ""),
                                    kFlameRowHeight_px * static_cast<double>(levels) + 14);
  FlameGraphDrawer flame(frame.canvas, total_j, width, level->by == "kernel");
  const double top = frame.plot_area.y + 6;
  frame.canvas.draw_rect({frame.plot_area.x, top, width - 1, kFlameRowHeight_px - 2}, {"#3d4a5c", 1, 2});
  frame.canvas.draw_text({frame.plot_area.x + 5, top + 16}, fmt::format("all  {} J", format_number(total_j)),
                         {11, "#ffffff", TextAnchor::start, true});
  double x = frame.plot_area.x;
  for (const EnergyNode& child : root.children) {
    const bool is_unattributed = child.name == "idle" || child.name == "not attributed";
    flame.draw_node(child, {x, top + kFlameRowHeight_px}, "",
                    is_unattributed ? kUnattributedColour : std::string_view("#66758a"), 1);
    x += flame.frame_width_px(child.summed_row.energy_j.value_or(0));
  }
  return std::move(frame.canvas).finish();
}

}  // namespace joulemap::report
