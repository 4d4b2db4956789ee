// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/run_rates.h"
#include "report/plot/plots.h"
#include "report/plot/svg_axes.h"
#include "report/plot/svg_curve.h"
#include "report/plot/svg_frame.h"
#include "report/plot/svg_theme.h"
#include "report/text/energy_rows.h"

namespace joulemap::report {
namespace {

constexpr double kLossPlotHeight_px = 320;
constexpr double kEpochPlotHeight_px = 190;
constexpr double kLossPlotLeftMargin_px = 62;
constexpr std::size_t kMaxEpochBars = 60;
constexpr std::size_t kSmoothingDivisor = 20;  // width of the moving average: 1/20 of the points

const MetricSeries* find_loss_metric(const RunView& view) {
  const MetricSeries* loss_metric = nullptr;
  for (const MetricSeries& series : view.metrics) {
    if (series.points.empty()) continue;
    if (series.name == "loss") return &series;
    if (loss_metric == nullptr && series.name.find("loss") != std::string::npos) loss_metric = &series;
  }
  return loss_metric;
}

// Energy used since the start of the run, as a function of time: sum of the counted domains.
class CumulativeEnergy {
 public:
  explicit CumulativeEnergy(const RunView& view) : slice_s_(view.run.slice_s) {
    const RunRates rates = compute_run_rates(view.run);
    for (const PowerSeries& series : view.run.power) {
      const bool counts =
          std::any_of(view.run.domains.begin(), view.run.domains.end(), [&](const DomainEnergy& domain) {
            return domain.name == series.domain && domain.is_counted && domain.provenance == rates.provenance;
          });
      if (!counts) continue;
      cumulative_j_.resize(std::max(cumulative_j_.size(), series.watts.size() + 1));
      double sum_j = 0;
      for (std::size_t i = 0; i < series.watts.size(); ++i) {
        sum_j += series.watts[i].value_or(0) * slice_s_;
        cumulative_j_[i + 1] += sum_j;
      }
    }
  }
  bool is_known() const { return cumulative_j_.size() > 1 && cumulative_j_.back() > 0; }
  double cumulative_energy_j(double time_s) const {
    const double position = std::clamp(time_s / slice_s_, 0.0, static_cast<double>(cumulative_j_.size() - 1));
    const auto lower_index = std::min(static_cast<std::size_t>(position), cumulative_j_.size() - 2);
    return cumulative_j_[lower_index] + (position - static_cast<double>(lower_index)) *
                                            (cumulative_j_[lower_index + 1] - cumulative_j_[lower_index]);
  }

 private:
  double slice_s_;
  std::vector<double> cumulative_j_;
};

void draw_epoch_bars(SvgCanvas& canvas, const Rect& plot_area, const RunView& view) {
  double highest = 0;
  for (const StepOrEpochView& epoch : view.epochs) highest = std::max(highest, epoch.joules_per_loss.value_or(0));
  const auto count = static_cast<double>(view.epochs.size());
  const PlotAxes axes{plot_area,
                      {0, count, plot_area.x, plot_area.right()},
                      {0, range_with_round_ends(0, highest, 4).high, plot_area.bottom(), plot_area.y}};
  draw_y_axis(canvas, axes, "J per unit of loss", 4);
  const double width = plot_area.width / count;
  for (std::size_t i = 0; i < view.epochs.size(); ++i) {
    const StepOrEpochView& epoch = view.epochs[i];
    const double x = plot_area.x + static_cast<double>(i) * width;
    canvas.draw_text({x + width / 2, plot_area.bottom() + 17}, fmt::format("{}", epoch.number),
                     {11, kMutedTextColour, TextAnchor::middle});
    if (!epoch.joules_per_loss) continue;
    const double y = axes.y.at(*epoch.joules_per_loss);
    canvas.draw_rect({x + width * 0.2, y, width * 0.6, plot_area.bottom() - y}, {kPalette[2], 1, 2});
    if (width > 34)
      canvas.draw_text({x + width / 2, y - 5}, format_number(*epoch.joules_per_loss, 3),
                       {11, kMutedTextColour, TextAnchor::middle});
  }
  canvas.draw_line({plot_area.x, plot_area.bottom()}, {plot_area.right(), plot_area.bottom()}, {kAxisColour, 1});
  canvas.draw_text({plot_area.x + plot_area.width / 2, plot_area.bottom() + 36},
                   "epoch; no bar where the loss did not decrease", {12, kMutedTextColour, TextAnchor::middle});
}

}  // namespace

Result<std::string> loss_svg(const RunView& view) {
  const MetricSeries* const loss = find_loss_metric(view);
  if (loss == nullptr)
    return nothing_to_plot_error("no loss", "log it with jm.log(loss=...), or use a loss module of PyTorch");
  const CumulativeEnergy cumulative_energy(view);
  if (!cumulative_energy.is_known())
    return nothing_to_plot_error("no energy over time", "run joulemap doctor to list the sensors");
  std::vector<Point> points;
  double low = loss->points.front().value;
  double high = low;
  for (const MetricPoint& point : loss->points) {
    if (!std::isfinite(point.value)) continue;
    points.push_back({cumulative_energy.cumulative_energy_j(point.time_s), point.value});
    low = std::min(low, point.value);
    high = std::max(high, point.value);
  }
  const bool has_epochs = view.epochs.size() < kMaxEpochBars &&
                          std::any_of(view.epochs.begin(), view.epochs.end(),
                                      [](const StepOrEpochView& epoch) { return epoch.joules_per_loss.has_value(); });
  const double height = kLossPlotHeight_px + 64 + (has_epochs ? kEpochPlotHeight_px + 68 : 0);
  PlotFrame frame = make_plot_frame(view, nullptr, "Loss against energy", height);
  const Rect plot_area{frame.plot_area.x + kLossPlotLeftMargin_px, frame.plot_area.y + 12,
                       frame.plot_area.width - kLossPlotLeftMargin_px, kLossPlotHeight_px};
  const ValueRange y = range_with_round_ends(low > 0 && low < 0.25 * high ? 0 : low, high, 5);
  const ValueRange x = {0, points.empty() ? 1 : points.back().x};
  const PlotAxes axes{
      plot_area, {0, x.high, plot_area.x, plot_area.right()}, {y.low, y.high, plot_area.bottom(), plot_area.y}};
  draw_y_axis(frame.canvas, axes, loss->name);
  draw_x_axis(frame.canvas, axes, "cumulative energy in J, including start-up", 8);
  frame.canvas.draw_polyline(to_pixel_points(points, axes), {"#b9d3e6", 1});
  const std::vector<Point> smoothed_points =
      to_pixel_points(moving_mean(points, points.size() / kSmoothingDivisor), axes);
  frame.canvas.draw_polyline(smoothed_points, {kPalette[0], 2.2});
  if (!points.empty()) {
    frame.canvas.draw_circle(smoothed_points.back(), 4, {kPalette[0]});
    frame.canvas.draw_text(
        {smoothed_points.back().x - 8, smoothed_points.back().y - 10},
        fmt::format("{} after {} J", format_number(points.back().y, 3), format_number(points.back().x, 3)),
        {12, kTextColour, TextAnchor::end, true});
  }
  if (has_epochs)
    draw_epoch_bars(frame.canvas, {plot_area.x, plot_area.bottom() + 66, plot_area.width, kEpochPlotHeight_px}, view);
  return std::move(frame.canvas).finish();
}

}  // namespace joulemap::report
