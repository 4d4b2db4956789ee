// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/plot/plots.h"
#include "report/plot/svg_axes.h"
#include "report/plot/svg_curve.h"
#include "report/plot/svg_frame.h"
#include "report/plot/svg_theme.h"
#include "report/text/energy_rows.h"

namespace joulemap::report {
namespace {

constexpr double kPowerPlotHeight_px = 300;
constexpr double kPhaseStripHeight_px = 36;
constexpr double kPhaseColumnWidth_px = 2;  // width of a column in the strip of phases, in px
constexpr double kGaugeTrackHeight_px = 74;
constexpr double kTimelineLeftMargin_px = 58;
constexpr std::size_t kMaxGaugeTracks = 4;
constexpr std::size_t kMaxEpochLabels = 24;

using OptionalValues = std::vector<std::optional<double>>;

// Least length of a slice, in update periods of the slowest counter: shorter slices would show when the counter was
// updated, not the power.
constexpr double kMinPeriodsPerSlice = 1;

double longest_update_period_s(const RunView& view) {
  double longest_s = 0;
  for (const CounterUpdateTiming& steps : view.run.counter_updates) longest_s = std::max(longest_s, steps.period_s);
  return longest_s;
}

std::size_t count_slices(double time_s, double slice_s) {
  return slice_s > 0 ? std::max<std::size_t>(static_cast<std::size_t>(std::ceil(time_s / slice_s)), 1) : 1;
}

OptionalValues group_means(const OptionalValues& values, std::size_t slices_per_group) {
  OptionalValues means;
  for (std::size_t group_begin = 0; group_begin < values.size(); group_begin += slices_per_group) {
    double sum = 0;
    double known_value_count = 0;
    for (std::size_t i = group_begin; i < std::min(group_begin + slices_per_group, values.size()); ++i) {
      if (!values[i]) continue;
      sum += *values[i];
      ++known_value_count;
    }
    means.push_back(known_value_count > 0 ? std::optional(sum / known_value_count) : std::nullopt);
  }
  return means;
}

double highest_known_value(const OptionalValues& values) {
  double highest = 0;
  for (const std::optional<double>& value : values) highest = std::max(highest, value.value_or(0));
  return highest;
}

bool is_estimated_domain(const RunView& view, const std::string& name) {
  for (const DomainEnergy& domain : view.run.domains) {
    if (domain.name == name) return domain.provenance == Provenance::estimated;
  }
  return false;
}

// Draws the strip of phases. A phase may be shorter than a pixel, so in each column the height of a phase is its share
// of the column's time.
void draw_phases(SvgCanvas& canvas, const PlotAxes& axes, double y, const std::vector<NamedTimeSpan>& named_spans,
                 const std::vector<LegendEntry>& order) {
  const auto columns = static_cast<std::size_t>(axes.plot_area.width / kPhaseColumnWidth_px);
  std::vector<std::map<std::string_view, double>> time(columns);
  const double column_duration_s = (axes.x.high_value - axes.x.low_value) / static_cast<double>(columns);
  const auto column_index = [&](double time_s) {
    return static_cast<std::size_t>(std::clamp(time_s / column_duration_s, 0.0, static_cast<double>(columns - 1)));
  };
  for (const NamedTimeSpan& named_span : named_spans) {
    for (std::size_t i = column_index(named_span.begin_s); i <= column_index(named_span.end_s); ++i) {
      const double overlap_begin_s = std::max(named_span.begin_s, static_cast<double>(i) * column_duration_s);
      const double overlap_end_s = std::min(named_span.end_s, static_cast<double>(i + 1) * column_duration_s);
      if (overlap_end_s > overlap_begin_s) time[i][named_span.name] += overlap_end_s - overlap_begin_s;
    }
  }
  for (std::size_t i = 0; i < columns; ++i) {
    double bottom_y = y + kPhaseStripHeight_px;
    for (const LegendEntry& phase : order) {
      const auto phase_time = time[i].find(phase.name);
      if (phase_time == time[i].end()) continue;
      const double height = kPhaseStripHeight_px * std::min(phase_time->second / column_duration_s, 1.0);
      bottom_y -= height;
      canvas.draw_rect({axes.plot_area.x + kPhaseColumnWidth_px * static_cast<double>(i), bottom_y,
                        kPhaseColumnWidth_px + 0.2, height},
                       {phase.colour});
    }
  }
}

std::vector<LegendEntry> phase_legend(const RunView& view) {
  std::map<std::string, double> time;
  for (const NamedTimeSpan& named_span : view.phases) time[named_span.name] += named_span.end_s - named_span.begin_s;
  std::vector<std::pair<double, std::string>> names;
  for (const auto& [name, duration_s] : time) names.emplace_back(duration_s, name);
  std::sort(names.rbegin(), names.rend());
  std::vector<LegendEntry> legend;
  for (const auto& [duration_s, name] : names) {
    if (legend.size() < 6)
      legend.push_back({name, colour_of_phase(std::string_view(name).substr(name.rfind(' ') + 1))});
  }
  return legend;
}

void draw_epoch_marks(SvgCanvas& canvas, const PlotAxes& axes, const RunView& view, double bottom_y) {
  if (view.epochs.size() < 2) return;
  const std::size_t epoch_stride = (view.epochs.size() + kMaxEpochLabels - 1) / kMaxEpochLabels;
  for (std::size_t i = 0; i < view.epochs.size(); i += epoch_stride) {
    const double x = axes.x.at(view.epochs[i].begin_s);
    canvas.draw_line({x, axes.plot_area.y}, {x, bottom_y}, {kAxisColour, 1, "2 3"});
    canvas.draw_text({x + 4, axes.plot_area.y + 11}, fmt::format("epoch {}", view.epochs[i].number),
                     {10, kMutedTextColour});
  }
}

// The first kMaxGaugeTracks gauges with values, such as temperature, clock and utilization; no powers, no limits.
std::vector<const ReportTrack*> select_gauge_tracks(const RunView& view) {
  std::vector<const ReportTrack*> tracks;
  for (const ReportTrack& track : view.run.tracks) {
    const bool is_known =
        std::any_of(track.values.begin(), track.values.end(), [](const auto& value) { return value.has_value(); });
    if (!is_known || unit_of(track.quantity) == "W" || track.name.find("limit") != std::string::npos) continue;
    if (tracks.size() < kMaxGaugeTracks) tracks.push_back(&track);
  }
  return tracks;
}

double draw_power(SvgCanvas& canvas, const PlotAxes& axes, const RunView& view) {
  std::vector<LegendEntry> legend;
  std::size_t index = 0;
  const double min_slice_s = kMinPeriodsPerSlice * longest_update_period_s(view);
  for (const PowerSeries& series : view.run.power) {
    const bool is_estimated = is_estimated_domain(view, series.domain);
    const std::string_view colour = palette_colour(index++);
    const std::size_t slices_per_group = count_slices(min_slice_s, view.run.slice_s);
    draw_curve(canvas, axes, group_means(series.watts, slices_per_group),
               view.run.slice_s * static_cast<double>(slices_per_group),
               {colour, is_estimated ? 1.4 : 1.7, is_estimated ? "5 3" : ""});
    legend.push_back({series.domain + (is_estimated ? " (estimated)" : ""), colour});
  }
  return draw_legend(canvas, {axes.plot_area.x, axes.plot_area.y - 24}, axes.plot_area.width, legend);
}

}  // namespace

Result<std::string> timeline_svg(const RunView& view) {
  double highest = 0;
  const std::size_t slices_per_group =
      count_slices(kMinPeriodsPerSlice * longest_update_period_s(view), view.run.slice_s);
  for (const PowerSeries& series : view.run.power) {
    highest = std::max(highest, highest_known_value(group_means(series.watts, slices_per_group)));
  }
  if (!(highest > 0)) return nothing_to_plot_error("no power over time", "run joulemap doctor to list the sensors");
  const std::vector<const ReportTrack*> tracks = select_gauge_tracks(view);
  const bool has_phases = !view.phases.empty();
  const double height = 40 + kPowerPlotHeight_px + (has_phases ? kPhaseStripHeight_px + 34 : 0) +
                        kGaugeTrackHeight_px * static_cast<double>(tracks.size()) + 54;
  PlotFrame frame = make_plot_frame(view, nullptr, "Power over time", height);
  const Rect plot_area{frame.plot_area.x + kTimelineLeftMargin_px, frame.plot_area.y + 36,
                       frame.plot_area.width - kTimelineLeftMargin_px, kPowerPlotHeight_px};
  const ValueRange range = range_with_round_ends(0, highest, 5);
  PlotAxes axes{plot_area,
                {0, view.run.elapsed_s, plot_area.x, plot_area.right()},
                {0, range.high, plot_area.bottom(), plot_area.y}};
  draw_y_axis(frame.canvas, axes, "watts");
  const double bottom_y = frame.plot_area.bottom() - 54;
  for (const NamedTimeSpan& named_span : view.probing) {
    frame.canvas.draw_rect({axes.x.at(named_span.begin_s), plot_area.y,
                            axes.x.at(named_span.end_s) - axes.x.at(named_span.begin_s), kPowerPlotHeight_px},
                           {"#8a94a3", 0.12, 0, "probing"});
  }
  draw_epoch_marks(frame.canvas, axes, view, bottom_y);
  draw_power(frame.canvas, axes, view);
  double y = plot_area.bottom() + 8;
  if (has_phases) {
    const std::vector<LegendEntry> phases = phase_legend(view);
    draw_phases(frame.canvas, axes, y, view.phases, phases);
    draw_legend(frame.canvas, {plot_area.x, y + kPhaseStripHeight_px + 6}, plot_area.width, phases);
    y += kPhaseStripHeight_px + 34;
  }
  for (const ReportTrack* track : tracks) {
    const std::string_view unit = unit_of(track->quantity);
    const Rect track_area{plot_area.x, y + 18, plot_area.width, kGaugeTrackHeight_px - 26};
    const ValueRange values = range_with_round_ends(0, std::max(highest_known_value(track->values), 1e-9), 2);
    const PlotAxes track_axes{track_area, axes.x, {0, values.high, track_area.bottom(), track_area.y}};
    draw_y_axis(frame.canvas, track_axes, "", 2);
    frame.canvas.draw_text({track_area.x, y + 12}, fmt::format("{}, {}", track->name, unit == "degC" ? "°C" : unit),
                           {11, kMutedTextColour});
    draw_sparse_curve(frame.canvas, track_axes, track->values, view.run.slice_s, {kTextColour, 1.2});
    y += kGaugeTrackHeight_px;
  }
  axes.plot_area.height = bottom_y - axes.plot_area.y;
  draw_x_axis(frame.canvas, axes, "seconds since the command began", 10);
  return std::move(frame.canvas).finish();
}

}  // namespace joulemap::report
