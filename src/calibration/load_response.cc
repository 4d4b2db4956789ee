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

constexpr double kNanosecondsPerMs = 1e6;  // ns
constexpr std::size_t kMinLoadObservations = 20;

// Search range of lags. Negative lags are unphysical, but times are known only to milliseconds.
constexpr double kMinLag_ns = -20 * kNanosecondsPerMs;
constexpr double kMaxLag_ns = 120 * kNanosecondsPerMs;
constexpr double kLagGridSpacing_ns = 5 * kNanosecondsPerMs;
constexpr double kFinestLagStep_ns = kNanosecondsPerMs / 8;
// Search range of the averaging time: the length of a moving average, which must not reach back beyond the idle time
// before the waves, or a time constant.
constexpr double kMinAveragingTime_ns = 2 * kNanosecondsPerMs;
constexpr double kMaxAveragingWindow_ns = 1700 * kNanosecondsPerMs;
constexpr double kMaxTimeConstant_ns = 400 * kNanosecondsPerMs;
constexpr double kAveragingTimeGridRatio = 1.25;
constexpr double kFinestAveragingTimeRatio = 1.002;

// Thresholds of a lag's cost: (sum of squares minus the smallest one) / (2 noise^2), which is half of a chi-squared
// with 1 degree of freedom. If no lag of the grid costs more than kMinLagIdentifyingCost, the lag is not identified.
// Lags that cost up to kMaxLagIntervalCost are in the 90 % interval.
constexpr double kMinLagIdentifyingCost = 6;
constexpr double kMaxLagIntervalCost = 1.35;
// Observations with a larger residual, in standard deviations, are outliers: a late poll, a changed clock.
constexpr double kOutlierDeviations = 4;

std::vector<double> make_lag_grid() {
  std::vector<double> lags_ns;
  const int count = static_cast<int>((kMaxLag_ns - kMinLag_ns) / kLagGridSpacing_ns);
  for (int i = 0; i <= count; ++i) lags_ns.push_back(kMinLag_ns + i * kLagGridSpacing_ns);
  return lags_ns;
}

// Geometric series from first to last.
std::vector<double> make_geometric_sequence(double first_value, double last_value, double factor) {
  const int count = static_cast<int>(std::log(last_value / first_value) / std::log(factor));
  std::vector<double> powers;
  for (int i = 0; i <= count; ++i) powers.push_back(first_value * std::pow(factor, i));
  return powers;
}

// An observation of the fit: the power that a value shows.
struct PowerObservation {
  std::int64_t time_ns;
  double length_ns;  // of a counter: time since its previous update; 0 of a gauge
  double watts;
};

std::vector<PowerObservation> make_power_observations(ChannelKind kind,
                                                      std::span<const PublishedValue> published_values,
                                                      const LoadSpan& waves) {
  std::vector<PowerObservation> rows;
  for (std::size_t i = 0; i < published_values.size(); ++i) {
    if (published_values[i].update_time_ns < waves.begin_ns || published_values[i].update_time_ns > waves.end_ns)
      continue;
    if (kind == ChannelKind::gauge) {
      rows.push_back({published_values[i].update_time_ns, 0, published_values[i].value});
    } else if (i > 0 && published_values[i].update_time_ns > published_values[i - 1].update_time_ns) {
      const std::int64_t length_ns = published_values[i].update_time_ns - published_values[i - 1].update_time_ns;
      rows.push_back({published_values[i].update_time_ns, static_cast<double>(length_ns),
                      (published_values[i].value - published_values[i - 1].value) / seconds(length_ns)});
    }
  }
  return rows;
}

// Least squares fit of power, in W, to a constant, the busy fraction and the time, because the power of a GPU grows as
// it warms up.
struct LinearPowerFit {
  double constant_w = 0;
  double w_per_busy_fraction = 0;
  double w_per_wave_duration = 0;
  double residual_sum_of_squares = 0;
};

LinearPowerFit fit_linear_power(const std::vector<PowerObservation>& rows, const std::vector<double>& busy) {
  const auto count = static_cast<double>(rows.size());
  const std::int64_t begin_ns = rows.front().time_ns;
  const double span_ns = std::max(static_cast<double>(rows.back().time_ns - begin_ns), 1.0);
  std::array<double, 3> means{};  // means of busy fraction, time and power
  std::vector<std::array<double, 3>> centred_rows(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    centred_rows[i] = {busy[i], static_cast<double>(rows[i].time_ns - begin_ns) / span_ns, rows[i].watts};
    for (std::size_t k = 0; k < 3; ++k) means[k] += centred_rows[i][k] / count;
  }
  double busy_square_sum = 0, busy_time_sum = 0, time_square_sum = 0, busy_power_sum = 0,
         time_power_sum = 0;  // sums of products
  for (auto& [busy_deviation, time_deviation, power_deviation] : centred_rows) {
    busy_deviation -= means[0];
    time_deviation -= means[1];
    power_deviation -= means[2];
    busy_square_sum += busy_deviation * busy_deviation;
    busy_time_sum += busy_deviation * time_deviation;
    time_square_sum += time_deviation * time_deviation;
    busy_power_sum += busy_deviation * power_deviation;
    time_power_sum += time_deviation * power_deviation;
  }
  const double determinant = busy_square_sum * time_square_sum - busy_time_sum * busy_time_sum;
  LinearPowerFit fit;
  if (determinant > 1e-12 * count * count) {
    fit.w_per_busy_fraction = (busy_power_sum * time_square_sum - time_power_sum * busy_time_sum) / determinant;
    fit.w_per_wave_duration = (time_power_sum * busy_square_sum - busy_power_sum * busy_time_sum) / determinant;
  }
  for (const auto& [busy_deviation, time_deviation, power_deviation] : centred_rows) {
    const double residual =
        power_deviation - fit.w_per_busy_fraction * busy_deviation - fit.w_per_wave_duration * time_deviation;
    fit.residual_sum_of_squares += residual * residual;
  }
  fit.constant_w = means[2] - fit.w_per_busy_fraction * means[0] - fit.w_per_wave_duration * means[1];
  return fit;
}

// A sensor model with a lag. `averaging_time_ns` is 0 for a counter.
struct SensorResponseModel {
  SensorAveraging averaging = SensorAveraging::integral;
  double averaging_time_ns = 0;
  double lag_ns = 0;
};

class SensorResponseSearch {
 public:
  SensorResponseSearch(std::vector<PowerObservation> rows, const BusyTime& busy)
      : observations_(std::move(rows)), busy_time_(busy) {}

  SensorResponseModel find_best_model(SensorAveraging averaging) const {
    SensorResponseModel best_model{averaging, 0, 0};
    double min_sum_of_squares = INFINITY;
    const double longest_ns =
        averaging == SensorAveraging::moving_average ? kMaxAveragingWindow_ns : kMaxTimeConstant_ns;
    for (const double candidate_averaging_ns :
         make_geometric_sequence(kMinAveragingTime_ns, longest_ns, kAveragingTimeGridRatio)) {
      for (const double lag_ns : make_lag_grid()) {
        keep_better_model({averaging, averaging == SensorAveraging::integral ? 0 : candidate_averaging_ns, lag_ns},
                          best_model, min_sum_of_squares);
      }
      if (averaging == SensorAveraging::integral) break;
    }
    return refine_model(best_model, min_sum_of_squares);
  }
  double residual_sum_of_squares(const SensorResponseModel& shape) const {
    return fit_linear_power(observations_, compute_busy_fractions(shape)).residual_sum_of_squares;
  }
  LinearPowerFit fit(const SensorResponseModel& shape) const {
    return fit_linear_power(observations_, compute_busy_fractions(shape));
  }
  // Smallest sum of squares at this lag over averaging times: a longer lag resembles a longer average.
  double min_sum_of_squares_at_lag(SensorResponseModel shape, double lag_ns) const {
    // Keep the centre of the averaged time fixed.
    const double lag_change_ns = shape.lag_ns - lag_ns;
    const double equivalent_averaging_ns =
        shape.averaging_time_ns + (shape.averaging == SensorAveraging::moving_average ? 2 : 1) * lag_change_ns;
    shape.lag_ns = lag_ns;
    double min_sum_of_squares = residual_sum_of_squares(shape);
    if (shape.averaging == SensorAveraging::integral) return min_sum_of_squares;
    for (const double candidate_averaging_ns :
         {(shape.averaging_time_ns + equivalent_averaging_ns) / 2, equivalent_averaging_ns}) {
      SensorResponseModel best_model{shape.averaging, std::max(candidate_averaging_ns, kMinAveragingTime_ns / 4),
                                     lag_ns};
      double candidate_sum_of_squares = residual_sum_of_squares(best_model);
      for (const double factor : {1.2, 1.1, 1.05, 1.02, 1.01}) {
        for (const double averaging_time_ratio : {factor, 1 / factor})
          keep_better_model({best_model.averaging, best_model.averaging_time_ns * averaging_time_ratio, lag_ns},
                            best_model, candidate_sum_of_squares);
      }
      min_sum_of_squares = std::min(min_sum_of_squares, candidate_sum_of_squares);
    }
    return min_sum_of_squares;
  }
  // Removes observations whose residual exceeds kOutlierDeviations standard deviations, unless too few would remain.
  void drop_outliers(const SensorResponseModel& shape) {
    const std::vector<double> busy = compute_busy_fractions(shape);
    const LinearPowerFit line = fit_linear_power(observations_, busy);
    const double span_ns =
        std::max(static_cast<double>(observations_.back().time_ns - observations_.front().time_ns), 1.0);
    std::vector<double> residuals;
    for (std::size_t i = 0; i < observations_.size(); ++i) {
      const double time = static_cast<double>(observations_[i].time_ns - observations_.front().time_ns) / span_ns;
      residuals.push_back(std::abs(observations_[i].watts - line.constant_w - line.w_per_busy_fraction * busy[i] -
                                   line.w_per_wave_duration * time));
    }
    const double max_residual_w = kOutlierDeviations * kMadToStandardDeviation * median_or(residuals, 0.0);
    std::vector<PowerObservation> retained_observations;
    for (std::size_t i = 0; i < observations_.size(); ++i) {
      if (residuals[i] <= max_residual_w) retained_observations.push_back(observations_[i]);
    }
    if (retained_observations.size() >= kMinLoadObservations) observations_ = std::move(retained_observations);
  }
  const std::vector<PowerObservation>& observations() const { return observations_; }

 private:
  std::vector<double> compute_busy_fractions(const SensorResponseModel& shape) const {
    std::vector<double> busy;
    busy.reserve(observations_.size());
    const auto lag_ns = static_cast<std::int64_t>(shape.lag_ns);
    if (shape.averaging == SensorAveraging::exponential_average) {
      const BusyTime::ExponentialAverage average(busy_time_, shape.averaging_time_ns);
      for (const PowerObservation& row : observations_) busy.push_back(average.average_at(row.time_ns - lag_ns));
      return busy;
    }
    for (const PowerObservation& row : observations_) {
      const double length_ns = shape.averaging == SensorAveraging::integral ? row.length_ns : shape.averaging_time_ns;
      busy.push_back(busy_time_.busy_fraction(row.time_ns - lag_ns - static_cast<std::int64_t>(length_ns), length_ns));
    }
    return busy;
  }
  void keep_better_model(const SensorResponseModel& candidate_model, SensorResponseModel& best_model,
                         double& min_sum_of_squares) const {
    const double candidate_sum_of_squares = residual_sum_of_squares(candidate_model);
    if (candidate_sum_of_squares < min_sum_of_squares)
      std::tie(best_model, min_sum_of_squares) = std::pair(candidate_model, candidate_sum_of_squares);
  }
  SensorResponseModel refine_model(SensorResponseModel best_model, double min_sum_of_squares) const {
    double step_ns = kLagGridSpacing_ns;
    double factor = kAveragingTimeGridRatio;
    while (step_ns > kFinestLagStep_ns || factor > kFinestAveragingTimeRatio) {
      const SensorResponseModel previous_model = best_model;
      for (const double lag_change_ns : {-step_ns, 0.0, step_ns}) {
        for (const double averaging_time_ratio : {1 / factor, 1.0, factor}) {
          const double lag_ns = std::clamp(previous_model.lag_ns + lag_change_ns, kMinLag_ns, kMaxLag_ns);
          keep_better_model({previous_model.averaging, previous_model.averaging_time_ns * averaging_time_ratio, lag_ns},
                            best_model, min_sum_of_squares);
        }
      }
      if (best_model.lag_ns == previous_model.lag_ns &&
          best_model.averaging_time_ns == previous_model.averaging_time_ns) {
        step_ns /= 2;
        factor = std::sqrt(factor);
      }
    }
    return best_model;
  }

  std::vector<PowerObservation> observations_;
  const BusyTime& busy_time_;
};

SensorResponseModel find_best_response_model(ChannelKind kind, const SensorResponseSearch& search) {
  if (kind == ChannelKind::counter) return search.find_best_model(SensorAveraging::integral);
  const SensorResponseModel moving_average = search.find_best_model(SensorAveraging::moving_average);
  const SensorResponseModel exponential_average = search.find_best_model(SensorAveraging::exponential_average);
  return search.residual_sum_of_squares(exponential_average) < search.residual_sum_of_squares(moving_average)
             ? exponential_average
             : moving_average;
}

// Finds the 90 % interval of the lag from the cost of lags around the best one. The lag is identified if some lag costs
// more than chance allows.
void set_lag_interval(const SensorResponseSearch& search, const SensorResponseModel& best_model, double residual_sd_w,
                      LoadResponse& response) {
  const double min_sum_of_squares = search.residual_sum_of_squares(best_model);
  const auto cost = [&](double lag_ns) {
    return (search.min_sum_of_squares_at_lag(best_model, lag_ns) - min_sum_of_squares) /
           (2 * residual_sd_w * residual_sd_w);
  };
  double max_cost = 0;
  for (const double lag_ns : make_lag_grid()) max_cost = std::max(max_cost, cost(lag_ns));
  response.is_lag_identified = max_cost > kMinLagIdentifyingCost;
  const auto find_lag_limit_ns = [&](double side) {
    double inside_ns = 0;
    for (const double lag_distance_ns : make_geometric_sequence(kFinestLagStep_ns, kMaxLag_ns - kMinLag_ns, 1.5)) {
      if (cost(best_model.lag_ns + side * lag_distance_ns) > kMaxLagIntervalCost) break;
      inside_ns = lag_distance_ns;
    }
    return best_model.lag_ns + side * std::max(inside_ns * 1.25, kFinestLagStep_ns);
  };
  response.lag_low_s = find_lag_limit_ns(-1) / 1e9;
  response.lag_high_s = find_lag_limit_ns(1) / 1e9;
}

}  // namespace

double LoadResponse::fall_time_s(double period_s) const {
  switch (averaging) {
    case SensorAveraging::integral:
      return period_s;
    case SensorAveraging::moving_average:
      return 0.9 * averaging_time_s;
    case SensorAveraging::exponential_average:
      return std::log(10.0) * averaging_time_s;
  }
  return 0;
}

std::optional<LoadResponse> find_load_response(ChannelKind kind, std::span<const PublishedValue> published_values,
                                               const LoadPhases& phases) {
  const BusyTime busy(phases.load_spans);
  SensorResponseSearch search(make_power_observations(kind, published_values, phases.square_waves), busy);
  if (search.observations().size() < kMinLoadObservations || phases.load_spans.empty()) return std::nullopt;
  search.drop_outliers(find_best_response_model(kind, search));
  const SensorResponseModel best_model = find_best_response_model(kind, search);
  const LinearPowerFit line = search.fit(best_model);
  const auto rows = static_cast<double>(search.observations().size());
  LoadResponse response;
  response.averaging = best_model.averaging;
  response.averaging_time_s = best_model.averaging_time_ns / 1e9;
  response.lag_s = best_model.lag_ns / 1e9;
  response.residual_sd_w = std::max(std::sqrt(line.residual_sum_of_squares / (rows - 5)), 1e-6);
  const double share =
      busy.busy_fraction(phases.square_waves.begin_ns, static_cast<double>(phases.square_waves.length_ns()));
  response.mean_w = line.constant_w + line.w_per_busy_fraction * share + line.w_per_wave_duration / 2;
  response.mean_standard_error_w = response.residual_sd_w / std::sqrt(rows);
  set_lag_interval(search, best_model, response.residual_sd_w, response);
  // A channel whose value falls under load does not measure the power of this GPU.
  response.is_lag_identified = response.is_lag_identified && line.w_per_busy_fraction > 0;
  return response;
}

std::optional<double> mean_published_w(ChannelKind kind, std::span<const PublishedValue> published_values,
                                       const LoadSpan& span, double delay_s) {
  const auto delay_ns = static_cast<std::int64_t>(delay_s * 1e9);
  std::vector<PublishedValue> span_values;
  for (const PublishedValue& value : published_values) {
    if (value.update_time_ns >= span.begin_ns + delay_ns && value.update_time_ns <= span.end_ns)
      span_values.push_back(value);
  }
  if (kind == ChannelKind::counter) {
    if (span_values.size() < 2) return std::nullopt;
    return (span_values.back().value - span_values.front().value) /
           seconds(span_values.back().update_time_ns - span_values.front().update_time_ns);
  }
  if (span_values.empty()) return std::nullopt;
  double sum = 0;
  for (const PublishedValue& value : span_values) sum += value.value;
  return sum / static_cast<double>(span_values.size());
}

std::optional<double> time_to_fall_s(ChannelKind kind, std::span<const PublishedValue> published_values,
                                     const LoadSpan& span, double low_w, double high_w) {
  const double fall_threshold_w = low_w + 0.1 * (high_w - low_w);
  std::optional<double> last_above_threshold_s = 0;
  bool has_value_in_span = false;
  for (std::size_t i = 1; i < published_values.size(); ++i) {
    if (published_values[i].update_time_ns < span.begin_ns || published_values[i].update_time_ns > span.end_ns)
      continue;
    const std::int64_t since_ns = published_values[i].update_time_ns - published_values[i - 1].update_time_ns;
    const bool is_gauge = kind == ChannelKind::gauge;
    const double watts = is_gauge ? published_values[i].value
                                  : (published_values[i].value - published_values[i - 1].value) / seconds(since_ns);
    has_value_in_span = true;
    if (watts > fall_threshold_w) last_above_threshold_s = seconds(published_values[i].update_time_ns - span.begin_ns);
  }
  const bool ends_above_threshold =
      !published_values.empty() && has_value_in_span && *last_above_threshold_s > 0.9 * seconds(span.length_ns());
  if (!has_value_in_span || ends_above_threshold) return std::nullopt;
  return last_above_threshold_s;
}

}  // namespace joulemap::calibration
