// SPDX-License-Identifier: Apache-2.0
#include "report/plot/svg_frame.h"

#include <fmt/format.h>

#include "model/run_rates.h"
#include "report/plot/svg_theme.h"
#include "report/text/command_energy.h"
#include "report/text/energy_rows.h"
#include "report/text/text_style.h"

namespace joulemap::report {
namespace {

constexpr double kHeaderHeight_px = 66;
constexpr double kFooterLineHeight_px = 17;

std::string plot_heading(const ReportResult& run) {
  std::string subject;
  for (const std::string& argument : run.command) subject += (subject.empty() ? "" : " ") + argument;
  return subject.empty() ? "a recording" : subject;
}

std::string energy_footer_line(const RunView& view) {
  const RunRates rates = compute_run_rates(view.run);
  if (!rates.energy_j)
    return fmt::format("{} in {}; energy unknown", plot_heading(view.run), duration_text(rates.time_s));
  std::string sensors;
  for (const DomainEnergy& domain : view.run.domains) {
    if (!domain.is_counted || domain.provenance != rates.provenance) continue;
    if (sensors.find(domain.sensor) == std::string::npos) sensors += (sensors.empty() ? "" : ", ") + domain.sensor;
  }
  std::string out = fmt::format("{} J ± {} J {}{} in {}", format_number(*rates.energy_j),
                                format_number(rates.half_width_j.value_or(0), 2), to_string(*rates.provenance),
                                rates.provenance == Provenance::measured ? fmt::format(" ({})", sensors) : "",
                                duration_text(rates.time_s));
  const RunRates command = command_rates(view);
  if (noticeable_background_j(view) > 0) out += fmt::format("; {} J by the command", format_number(*command.energy_j));
  if (command.steps.value_or(0) > 1) {
    out += fmt::format("; {} J per step{}, {:.0f} steps", format_number(*command.energy_per_unit(command.steps), 3),
                       are_other_processes_included(view) ? " with other processes" : "", *command.steps);
  }
  return out;
}

std::vector<std::string> footer_lines(const RunView& view, const LevelView* level) {
  std::string first_line;
  if (level != nullptr && level->attributed_j) {
    first_line = fmt::format("By {}: {} J attributed, {} J idle, {} J not attributed. ", level->by,
                             format_number(*level->attributed_j), format_number(level->idle_j.value_or(0), 3),
                             format_number(level->unattributed_j.value_or(0), 3));
  }
  if (view.run.probe) {
    first_line += fmt::format("Probing: {} J in {}. ", format_optional_number(view.run.probe->energy_j),
                              duration_text(view.run.probe->time_s));
  }
  if (view.run.overhead_cpu_s && view.run.elapsed_s > 0) {
    first_line += fmt::format("Recording: {:.2g} % of a CPU. ", 100 * *view.run.overhead_cpu_s / view.run.elapsed_s);
  }
  std::vector<std::string> lines = {first_line};
  const auto& notes = level != nullptr ? level->diagnostics.list() : view.run.diagnostics.list();
  std::size_t count = view.run.diagnostics.list().size() + (level != nullptr ? level->diagnostics.list().size() : 0);
  if (!notes.empty())
    lines.push_back((count > 1 ? fmt::format("{} notes; ", count) : "Note: ") + notes.front().message);
  return lines;
}

}  // namespace

PlotFrame make_plot_frame(const RunView& view, const LevelView* level, std::string_view title, double height_of_plot) {
  const std::vector<std::string> footer = footer_lines(view, level);
  const double footer_height = kFooterLineHeight_px * static_cast<double>(footer.size()) + 18;
  const double width = kPlotWidth_px;
  SvgCanvas canvas(width, kHeaderHeight_px + height_of_plot + footer_height, title, energy_footer_line(view));
  canvas.draw_text({kPlotMargin_px, 32}, title, {20, kTextColour, TextAnchor::start, true});
  canvas.draw_text({width - kPlotMargin_px, 32}, shorten_to_width(plot_heading(view.run), 12, 380),
                   {12, kMutedTextColour, TextAnchor::end});
  canvas.draw_text({kPlotMargin_px, 53}, shorten_to_width(energy_footer_line(view), 13, width - 2 * kPlotMargin_px),
                   {13, kMutedTextColour});
  double y = kHeaderHeight_px + height_of_plot + 16;
  for (const std::string& line : footer) {
    canvas.draw_text({kPlotMargin_px, y}, shorten_to_width(line, 11, width - 2 * kPlotMargin_px),
                     {11, kMutedTextColour});
    y += kFooterLineHeight_px;
  }
  return {std::move(canvas), {kPlotMargin_px, kHeaderHeight_px, width - 2 * kPlotMargin_px, height_of_plot}};
}

double draw_legend(SvgCanvas& canvas, Point top_left, double width, const std::vector<LegendEntry>& entries) {
  constexpr double kFontSize_px = 12;
  constexpr double kLineHeight_px = 20;
  double x = top_left.x;
  double y = top_left.y;
  for (const LegendEntry& entry : entries) {
    const double entry_width = 16 + text_width(entry.name, kFontSize_px) + 16;
    if (x > top_left.x && x + entry_width > top_left.x + width) {
      x = top_left.x;
      y += kLineHeight_px;
    }
    canvas.draw_rect({x, y, 11, 11}, {entry.colour, 1, 2});
    canvas.draw_text({x + 16, y + 10}, entry.name, {kFontSize_px, kTextColour});
    x += entry_width;
  }
  return entries.empty() ? 0 : y - top_left.y + kLineHeight_px;
}

}  // namespace joulemap::report
