// SPDX-License-Identifier: Apache-2.0
#include "calibration/load_response.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "base/median.h"
#include "calibration/busy_time.h"

namespace joulemap::calibration {
namespace {

constexpr double kMs = 1e6;  // ns
constexpr std::size_t kMinRows = 20;

// Search range of lags. Negative lags are unphysical, but times are known only to milliseconds.
constexpr double kMinLag_ns = -20 * kMs;
constexpr double kMaxLag_ns = 120 * kMs;
constexpr double kLagGrid_ns = 5 * kMs;
constexpr double kLagRefined_ns = kMs / 8;
// Search range of the averaging time: the length of a moving average, which must not reach back beyond the idle time
// before the waves, or a time constant.
constexpr double kMinAveraged_ns = 2 * kMs;
constexpr double kMaxWindow_ns = 1700 * kMs;
constexpr double kMaxTimeConstant_ns = 400 * kMs;
constexpr double kAveragedGrid = 1.25;
constexpr double kAveragedRefined = 1.002;

// Thresholds of a lag's cost: (sum of squares minus the smallest one) / (2 noise^2), which is half of a chi-squared
// with 1 degree of freedom. If no lag of the grid costs more than kFlatCost, the lag is not identified. Lags that cost
// up to kUnsureCost are in the 90 % interval.
constexpr double kFlatCost = 6;
constexpr double kUnsureCost = 1.35;
// Observations with a larger residual, in standard deviations, are outliers: a late poll, a changed clock.
constexpr double kOutlier = 4;
constexpr double kSdPerMad = 1.4826;

std::vector<double> lag_grid() {
  std::vector<double> lags_ns;
  const int count = static_cast<int>((kMaxLag_ns - kMinLag_ns) / kLagGrid_ns);
  for (int i = 0; i <= count; ++i) lags_ns.push_back(kMinLag_ns + i * kLagGrid_ns);
  return lags_ns;
}

// Geometric series from first to last.
std::vector<double> powers_between(double first, double last, double factor) {
  const int count = static_cast<int>(std::log(last / first) / std::log(factor));
  std::vector<double> powers;
  for (int i = 0; i <= count; ++i) powers.push_back(first * std::pow(factor, i));
  return powers;
}

// An observation of the fit: the power that a value shows.
struct Row {
  std::int64_t time_ns;
  double length_ns;  // of a counter: time since its previous update; 0 of a gauge
  double watts;
};

std::vector<Row> rows_of(ChannelKind kind, std::span<const DisplayedValue> displayed, const LoadSpan& waves) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < displayed.size(); ++i) {
    if (displayed[i].time_ns < waves.begin_ns || displayed[i].time_ns > waves.end_ns) continue;
    if (kind == ChannelKind::gauge) {
      rows.push_back({displayed[i].time_ns, 0, displayed[i].value});
    } else if (i > 0 && displayed[i].time_ns > displayed[i - 1].time_ns) {
      const std::int64_t length_ns = displayed[i].time_ns - displayed[i - 1].time_ns;
      rows.push_back({displayed[i].time_ns, static_cast<double>(length_ns),
                      (displayed[i].value - displayed[i - 1].value) / seconds(length_ns)});
    }
  }
  return rows;
}

// Least squares fit of power, in W, to a constant, the busy fraction and the time, because the power of a GPU grows as
// it warms up.
struct LineFit {
  double constant = 0;
  double per_busy = 0;
  double per_time = 0;
  double squares = 0;
};

LineFit fit_line(const std::vector<Row>& rows, const std::vector<double>& busy) {
  const auto count = static_cast<double>(rows.size());
  const std::int64_t begin_ns = rows.front().time_ns;
  const double span_ns = std::max(static_cast<double>(rows.back().time_ns - begin_ns), 1.0);
  std::array<double, 3> means{};  // means of busy fraction, time and power
  std::vector<std::array<double, 3>> centred(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    centred[i] = {busy[i], static_cast<double>(rows[i].time_ns - begin_ns) / span_ns, rows[i].watts};
    for (std::size_t k = 0; k < 3; ++k) means[k] += centred[i][k] / count;
  }
  double bb = 0, bt = 0, tt = 0, bw = 0, tw = 0;  // sums of products
  for (auto& [b, t, w] : centred) {
    b -= means[0];
    t -= means[1];
    w -= means[2];
    bb += b * b;
    bt += b * t;
    tt += t * t;
    bw += b * w;
    tw += t * w;
  }
  const double determinant = bb * tt - bt * bt;
  LineFit fit;
  if (determinant > 1e-12 * count * count) {
    fit.per_busy = (bw * tt - tw * bt) / determinant;
    fit.per_time = (tw * bb - bw * bt) / determinant;
  }
  for (const auto& [b, t, w] : centred) {
    const double residual = w - fit.per_busy * b - fit.per_time * t;
    fit.squares += residual * residual;
  }
  fit.constant = means[2] - fit.per_busy * means[0] - fit.per_time * means[1];
  return fit;
}

// A sensor model with a lag. `averaged_ns` is 0 for a counter.
struct SensorShape {
  Averaging averaging = Averaging::integral;
  double averaged_ns = 0;
  double lag_ns = 0;
};

class ResponseSearch {
 public:
  ResponseSearch(std::vector<Row> rows, const BusyTime& busy) : rows_(std::move(rows)), busy_(busy) {}

  SensorShape best_of(Averaging averaging) const {
    SensorShape best{averaging, 0, 0};
    double least = INFINITY;
    const double longest_ns = averaging == Averaging::moving_average ? kMaxWindow_ns : kMaxTimeConstant_ns;
    for (const double averaged_ns : powers_between(kMinAveraged_ns, longest_ns, kAveragedGrid)) {
      for (const double lag_ns : lag_grid()) {
        take_better({averaging, averaging == Averaging::integral ? 0 : averaged_ns, lag_ns}, best, least);
      }
      if (averaging == Averaging::integral) break;
    }
    return refined(best, least);
  }
  double squares(const SensorShape& shape) const { return fit_line(rows_, busy_at(shape)).squares; }
  LineFit fit(const SensorShape& shape) const { return fit_line(rows_, busy_at(shape)); }
  // Smallest sum of squares at this lag over averaging times: a longer lag resembles a longer average.
  double squares_at(SensorShape shape, double lag_ns) const {
    // Keep the centre of the averaged time fixed.
    const double moved_ns = shape.lag_ns - lag_ns;
    const double equivalent_ns = shape.averaged_ns + (shape.averaging == Averaging::moving_average ? 2 : 1) * moved_ns;
    shape.lag_ns = lag_ns;
    double least = squares(shape);
    if (shape.averaging == Averaging::integral) return least;
    for (const double averaged_ns : {(shape.averaged_ns + equivalent_ns) / 2, equivalent_ns}) {
      SensorShape best{shape.averaging, std::max(averaged_ns, kMinAveraged_ns / 4), lag_ns};
      double candidate_squares = squares(best);
      for (const double factor : {1.2, 1.1, 1.05, 1.02, 1.01}) {
        for (const double by : {factor, 1 / factor})
          take_better({best.averaging, best.averaged_ns * by, lag_ns}, best, candidate_squares);
      }
      least = std::min(least, candidate_squares);
    }
    return least;
  }
  // Removes observations whose residual exceeds kOutlier standard deviations, unless too few would remain.
  void drop_outliers(const SensorShape& shape) {
    const std::vector<double> busy = busy_at(shape);
    const LineFit line = fit_line(rows_, busy);
    const double span_ns = std::max(static_cast<double>(rows_.back().time_ns - rows_.front().time_ns), 1.0);
    std::vector<double> residuals;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const double time = static_cast<double>(rows_[i].time_ns - rows_.front().time_ns) / span_ns;
      residuals.push_back(std::abs(rows_[i].watts - line.constant - line.per_busy * busy[i] - line.per_time * time));
    }
    const double most = kOutlier * kSdPerMad * median_or(residuals, 0.0);
    std::vector<Row> kept;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (residuals[i] <= most) kept.push_back(rows_[i]);
    }
    if (kept.size() >= kMinRows) rows_ = std::move(kept);
  }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<double> busy_at(const SensorShape& shape) const {
    std::vector<double> busy;
    busy.reserve(rows_.size());
    const auto lag_ns = static_cast<std::int64_t>(shape.lag_ns);
    if (shape.averaging == Averaging::exponential_average) {
      const BusyTime::ExponentialAverage average(busy_, shape.averaged_ns);
      for (const Row& row : rows_) busy.push_back(average.at(row.time_ns - lag_ns));
      return busy;
    }
    for (const Row& row : rows_) {
      const double length_ns = shape.averaging == Averaging::integral ? row.length_ns : shape.averaged_ns;
      busy.push_back(busy_.mean(row.time_ns - lag_ns - static_cast<std::int64_t>(length_ns), length_ns));
    }
    return busy;
  }
  void take_better(const SensorShape& other, SensorShape& best, double& least) const {
    const double candidate_squares = squares(other);
    if (candidate_squares < least) std::tie(best, least) = std::pair(other, candidate_squares);
  }
  SensorShape refined(SensorShape best, double least) const {
    double step_ns = kLagGrid_ns;
    double factor = kAveragedGrid;
    while (step_ns > kLagRefined_ns || factor > kAveragedRefined) {
      const SensorShape from = best;
      for (const double moved_ns : {-step_ns, 0.0, step_ns}) {
        for (const double by : {1 / factor, 1.0, factor}) {
          const double lag_ns = std::clamp(from.lag_ns + moved_ns, kMinLag_ns, kMaxLag_ns);
          take_better({from.averaging, from.averaged_ns * by, lag_ns}, best, least);
        }
      }
      if (best.lag_ns == from.lag_ns && best.averaged_ns == from.averaged_ns) {
        step_ns /= 2;
        factor = std::sqrt(factor);
      }
    }
    return best;
  }

  std::vector<Row> rows_;
  const BusyTime& busy_;
};

SensorShape best_shape(ChannelKind kind, const ResponseSearch& search) {
  if (kind == ChannelKind::counter) return search.best_of(Averaging::integral);
  const SensorShape moving_average = search.best_of(Averaging::moving_average);
  const SensorShape exponential_average = search.best_of(Averaging::exponential_average);
  return search.squares(exponential_average) < search.squares(moving_average) ? exponential_average : moving_average;
}

// Finds the 90 % interval of the lag from the cost of lags around the best one. The lag is identified if some lag costs
// more than chance allows.
void find_interval(const ResponseSearch& search, const SensorShape& best, double noise_w, LoadResponse& response) {
  const double least = search.squares(best);
  const auto cost = [&](double lag_ns) { return (search.squares_at(best, lag_ns) - least) / (2 * noise_w * noise_w); };
  double most = 0;
  for (const double lag_ns : lag_grid()) most = std::max(most, cost(lag_ns));
  response.is_lag_identified = most > kFlatCost;
  const auto crossing = [&](double side) {
    double inside_ns = 0;
    for (const double away_ns : powers_between(kLagRefined_ns, kMaxLag_ns - kMinLag_ns, 1.5)) {
      if (cost(best.lag_ns + side * away_ns) > kUnsureCost) break;
      inside_ns = away_ns;
    }
    return best.lag_ns + side * std::max(inside_ns * 1.25, kLagRefined_ns);
  };
  response.lag_low_s = crossing(-1) / 1e9;
  response.lag_high_s = crossing(1) / 1e9;
}

}  // namespace

double LoadResponse::fall_time_s(double period_s) const {
  switch (averaging) {
    case Averaging::integral:
      return period_s;
    case Averaging::moving_average:
      return 0.9 * averaging_time_s;
    case Averaging::exponential_average:
      return std::log(10.0) * averaging_time_s;
  }
  return 0;
}

std::optional<LoadResponse> find_response(ChannelKind kind, std::span<const DisplayedValue> displayed,
                                          const LoadPhases& phases) {
  const BusyTime busy(phases.loads);
  ResponseSearch search(rows_of(kind, displayed, phases.square_waves), busy);
  if (search.rows().size() < kMinRows || phases.loads.empty()) return std::nullopt;
  search.drop_outliers(best_shape(kind, search));
  const SensorShape best = best_shape(kind, search);
  const LineFit line = search.fit(best);
  const auto rows = static_cast<double>(search.rows().size());
  LoadResponse response;
  response.averaging = best.averaging;
  response.averaging_time_s = best.averaged_ns / 1e9;
  response.lag_s = best.lag_ns / 1e9;
  response.noise_w = std::max(std::sqrt(line.squares / (rows - 5)), 1e-6);
  const double share = busy.mean(phases.square_waves.begin_ns, static_cast<double>(phases.square_waves.length_ns()));
  response.mean_w = line.constant + line.per_busy * share + line.per_time / 2;
  response.mean_spread_w = response.noise_w / std::sqrt(rows);
  find_interval(search, best, response.noise_w, response);
  // A channel whose value falls under load does not measure the power of this GPU.
  response.is_lag_identified = response.is_lag_identified && line.per_busy > 0;
  return response;
}

std::optional<double> mean_displayed_w(ChannelKind kind, std::span<const DisplayedValue> displayed,
                                       const LoadSpan& span, double delay_s) {
  const auto delay_ns = static_cast<std::int64_t>(delay_s * 1e9);
  std::vector<DisplayedValue> within;
  for (const DisplayedValue& value : displayed) {
    if (value.time_ns >= span.begin_ns + delay_ns && value.time_ns <= span.end_ns) within.push_back(value);
  }
  if (kind == ChannelKind::counter) {
    if (within.size() < 2) return std::nullopt;
    return (within.back().value - within.front().value) / seconds(within.back().time_ns - within.front().time_ns);
  }
  if (within.empty()) return std::nullopt;
  double sum = 0;
  for (const DisplayedValue& value : within) sum += value.value;
  return sum / static_cast<double>(within.size());
}

std::optional<double> time_to_fall_s(ChannelKind kind, std::span<const DisplayedValue> displayed, const LoadSpan& span,
                                     double low_w, double high_w) {
  const double enough_w = low_w + 0.1 * (high_w - low_w);
  std::optional<double> last_high_s = 0;
  bool any = false;
  for (std::size_t i = 1; i < displayed.size(); ++i) {
    if (displayed[i].time_ns < span.begin_ns || displayed[i].time_ns > span.end_ns) continue;
    const std::int64_t since_ns = displayed[i].time_ns - displayed[i - 1].time_ns;
    const bool is_gauge = kind == ChannelKind::gauge;
    const double watts =
        is_gauge ? displayed[i].value : (displayed[i].value - displayed[i - 1].value) / seconds(since_ns);
    any = true;
    if (watts > enough_w) last_high_s = seconds(displayed[i].time_ns - span.begin_ns);
  }
  const bool ends_high = !displayed.empty() && any && *last_high_s > 0.9 * seconds(span.length_ns());
  if (!any || ends_high) return std::nullopt;
  return last_high_s;
}

}  // namespace joulemap::calibration
