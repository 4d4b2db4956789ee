// SPDX-License-Identifier: Apache-2.0
//
// One run of each chosen cell over time, below each other on common axes: power and gauges, with the epochs.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/plot/experiment_plots.h"
#include "report/plot/svg_axes.h"
#include "report/plot/svg_cells.h"
#include "report/plot/svg_curve.h"
#include "report/plot/svg_theme.h"
#include "report/text/analysis_tables.h"

namespace joulemap::report {
namespace {

constexpr double kPowerStripHeight_px = 150;
constexpr double kGaugeStripHeight_px = 60;
constexpr double kStripGap_px = 16;
constexpr double kCellGap_px = 40;
constexpr std::size_t kMaxEpochLabels = 24;

// Gauges that the plot shows, if a run has them.
constexpr std::array<std::string_view, 2> kShownGaugeNames = {"gpu_utilization", "temperature"};

const SeriesChannel* find_channel(const RowSeries& series, std::string_view name) {
  const auto channel = std::ranges::find(series.channels, name, &SeriesChannel::name);
  return channel == series.channels.end() ? nullptr : &*channel;
}

// Sum of the powers; none in a slice in which one is unknown.
std::vector<std::optional<double>> total_power_series(const RowSeries& series) {
  std::vector<std::optional<double>> sum;
  for (const SeriesChannel& channel : series.channels) {
    if (channel.unit != "W") continue;
    if (sum.empty()) {
      sum = channel.values;
      continue;
    }
    for (std::size_t i = 0; i < sum.size(); ++i) {
      const bool is_known = sum[i] && i < channel.values.size() && channel.values[i];
      sum[i] = is_known ? std::optional(*sum[i] + *channel.values[i]) : std::nullopt;
    }
  }
  return sum;
}

double highest_value(const std::vector<std::optional<double>>& values) {
  double highest = 0;
  for (const std::optional<double>& value : values) highest = std::max(highest, value.value_or(0));
  return highest;
}

double series_duration_s(const ExperimentRow& row) {
  std::size_t slices = 0;
  for (const SeriesChannel& channel : row.series.channels) slices = std::max(slices, channel.values.size());
  return row.series.slice_s * static_cast<double>(slices);
}

struct ShownRun {
  const AnalysisCell* cell = nullptr;
  const ExperimentRow* row = nullptr;
};

// A strip of the plot, with the same range in all runs.
struct TimelineStrip {
  std::string name;  // empty: power
  std::string title;
  double height = 0;
  double axis_max = 0;
};

std::vector<TimelineStrip> make_timeline_strips(const std::vector<ShownRun>& runs) {
  std::vector<TimelineStrip> strips = {{"", "power, W", kPowerStripHeight_px, 0}};
  for (const std::string_view name : kShownGaugeNames) {
    TimelineStrip strip{std::string(name), "", kGaugeStripHeight_px, 0};
    for (const ShownRun& run : runs) {
      const SeriesChannel* const channel = find_channel(run.row->series, name);
      if (channel == nullptr) continue;
      strip.title = fmt::format("{}, {}", name == "gpu_utilization" ? "GPU" : "temp.", channel->unit);
      strip.axis_max = std::max(strip.axis_max, highest_value(channel->values));
    }
    if (!strip.title.empty()) strips.push_back(strip);
  }
  for (const ShownRun& run : runs)
    strips[0].axis_max = std::max(strips[0].axis_max, highest_value(total_power_series(run.row->series)));
  return strips;
}

void draw_epoch_boundaries(SvgCanvas& canvas, const PlotAxes& axes, const ExperimentRow& row, double bottom_y) {
  const std::size_t label_interval = row.epochs.size() / kMaxEpochLabels + 1;
  for (std::size_t i = 0; i < row.epochs.size(); ++i) {
    const EpochResult& epoch = row.epochs[i];
    const double end = axes.x.at(epoch.start_s + epoch.elapsed_s);
    canvas.draw_line({end, axes.plot_area.y}, {end, bottom_y}, {kAxisColour, 1, "2 3"});
    const double center_x = axes.x.at(epoch.start_s + epoch.elapsed_s / 2);
    if (i % label_interval == 0)
      canvas.draw_text({center_x, axes.plot_area.y - 4}, fmt::format("{}", i + 1),
                       {10, kMutedTextColour, TextAnchor::middle});
  }
}

// The title of a run: its levels, energy and number of epochs.
std::string run_title(const AnalysisResult& result, const ShownRun& run) {
  std::string title = fmt::format("{} (row {})", short_levels_text(result, run.cell->levels), run.row->number);
  if (!run.row->epochs.empty()) title += fmt::format("; {} epochs, numbered", run.row->epochs.size());
  return title;
}

}  // namespace

const ExperimentRow* find_row_with_power_series(const ExperimentData& data, const AnalysisCell& cell) {
  for (const ExperimentRow& row : data.rows) {
    if (row.levels != cell.levels || row.state != ExperimentRowState::done) continue;
    if (row.series.slice_s > 0 && highest_value(total_power_series(row.series)) > 0) return &row;
  }
  return nullptr;
}

std::string run_timelines_svg(const ExperimentData& data, const AnalysisResult& result,
                              std::span<const std::size_t> cells) {
  std::vector<ShownRun> runs;
  double longest_s = 0;
  for (const std::size_t cell : cells) {
    const ExperimentRow* const row = find_row_with_power_series(data, result.cells[cell]);
    if (row == nullptr) continue;
    runs.push_back({&result.cells[cell], row});
    longest_s = std::max(longest_s, series_duration_s(*row));
  }
  if (runs.empty() || !(longest_s > 0)) return "";
  const std::vector<TimelineStrip> strips = make_timeline_strips(runs);
  double run_height = kCellGap_px;
  for (const TimelineStrip& strip : strips) run_height += strip.height + kStripGap_px;
  SvgCanvas canvas =
      make_titled_canvas(kPlotTop_px + run_height * static_cast<double>(runs.size()) + 44,
                         "One run over time; dashes: end of an epoch", "the first row of each chosen cell");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    double y = kPlotTop_px + run_height * static_cast<double>(i) + kCellGap_px - 8;
    canvas.draw_text({kPlotMargin_px + 50, y - 22}, run_title(result, runs[i]),
                     {13, kTextColour, TextAnchor::start, true});
    const double bottom_y = y + run_height - kCellGap_px - kStripGap_px;
    for (const TimelineStrip& strip : strips) {
      const Rect plot_area{kPlotMargin_px + 50, y, kPlotWidth_px - 2 * kPlotMargin_px - 60, strip.height};
      const int ticks = strip.name.empty() ? 4 : 2;
      const PlotAxes axes{
          plot_area,
          {0, longest_s, plot_area.x, plot_area.right()},
          {0, range_with_round_ends(0, std::max(strip.axis_max, 1e-9), ticks).high, plot_area.bottom(), plot_area.y}};
      draw_y_axis(canvas, axes, strip.title, ticks);
      if (strip.name.empty()) draw_epoch_boundaries(canvas, axes, *runs[i].row, bottom_y);
      const SeriesChannel* const channel = find_channel(runs[i].row->series, strip.name);
      const auto values = strip.name.empty()   ? total_power_series(runs[i].row->series)
                          : channel == nullptr ? std::vector<std::optional<double>>()
                                               : channel->values;
      draw_sparse_curve(canvas, axes, values, runs[i].row->series.slice_s,
                        {palette_colour(i), strip.name.empty() ? 1.7 : 1.3});
      const bool is_last = i + 1 == runs.size() && &strip == &strips.back();
      if (is_last) draw_x_axis(canvas, axes, "seconds since the run began", 10);
      y += strip.height + kStripGap_px;
    }
  }
  return std::move(canvas).finish();
}

}  // namespace joulemap::report
