// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/power_evidence.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace joulemap::attribution {
namespace {

constexpr std::int64_t kNsPerMs = kNanosecondsPerMillisecond;

// Search range of the lag. It includes negative lags, because timestamps are only accurate to milliseconds. On an H200
// the energy counter lags by 10 ms; the power history, every 20 ms, has a time constant of 12 to 15 ms and almost no
// lag.
struct LagSearchRange {
  std::int64_t min_lag_ns;
  std::int64_t max_lag_ns;
  std::int64_t default_lag_ns;
};
constexpr LagSearchRange kCounterLagRange{-5 * kNsPerMs, 60 * kNsPerMs, kUsualCounterLag_ns};
constexpr LagSearchRange kGaugeLagRange{-15 * kNsPerMs, 25 * kNsPerMs, 0};
constexpr std::int64_t kLagGridStep_ns = 5 * kNsPerMs;
constexpr std::int64_t kRefinedLagStep_ns = kNsPerMs / 4;
constexpr std::int64_t kDefaultTimeConstant_ns = 12 * kNsPerMs;
// Prior standard deviations of a gauge's time constant (relative) and lag: about the default values or, where there is
// a calibration, about the calibrated ones.
constexpr double kDefaultTimeConstantRelativeSd = 0.3;
constexpr double kCalibratedTimeConstantRelativeSd = 0.06;
constexpr std::int64_t kDefaultLagSd_ns = 5 * kNsPerMs;
constexpr std::int64_t kCalibratedLagSd_ns = kNsPerMs;
constexpr std::int64_t kTimeConstantGrid_ns[] = {4 * kNsPerMs, 8 * kNsPerMs, 12 * kNsPerMs, 18 * kNsPerMs,
                                                 27 * kNsPerMs};
// Power that is older than this does not matter to a gauge: about five times the longest time constant in the grid.
constexpr std::int64_t kGaugeAveragingWindow_ns = 130 * kNsPerMs;
// Differences of cost, in units of the noise variance (half of chi squared with one degree of freedom). If the cost
// varies by less than kMinLagCostRange over all lags, no lag fits better than another. kMaxExcessCostIn90Interval
// bounds its 90 % interval.
constexpr double kMinLagCostRange = 6;
constexpr double kMaxExcessCostIn90Interval = 1.35;
// kMaxExcessCostIn90Region bounds the 90 % region of lag and time constant together. Sensor models are approximate: one
// whose cost is higher than the best by less than kModelErrorCostFraction of the total cost is not distinguished from
// the best either.
constexpr double kMaxExcessCostIn90Region = 2.3;
constexpr double kModelErrorCostFraction = 0.001;
// Alternative sensor models: factor between time constants, distance between lags, and most of them to either side.
constexpr double kAlternativeTimeConstantRatio = 1.2;
constexpr std::int64_t kAlternativeLagStep_ns = 5 * kNsPerMs / 4;
constexpr int kMaxAlternativesPerSide = 6;
// Power is proportional to frequency times voltage squared, and voltage falls with frequency: exponent 3, or a little
// more where other units idle while they wait.
constexpr double kSlowdownExponents[] = {0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5};

// This many observations, from a few separate parts of the run, suffice to estimate two parameters.
constexpr std::size_t kMaxSearchedObservations = 2400;
constexpr std::size_t kModelSearchPartCount = 6;

// From the first kernel on: before it the GPU may be in a sleep state, whose power differs from idle between kernels.
std::vector<EnergyPoint> select_usable_updates(const KernelTimeline& timeline, std::span<const EnergyPoint> points) {
  std::vector<EnergyPoint> points_in_range;
  for (const EnergyPoint& point : points) {
    if (point.time_ns < timeline.begin_ns() - kCounterLagRange.max_lag_ns) continue;
    if (!points_in_range.empty() && point.time_ns <= points_in_range.back().time_ns) continue;
    points_in_range.push_back(point);
    if (point.time_ns > timeline.end_ns() + kCounterLagRange.max_lag_ns) break;
  }
  std::vector<std::int64_t> edges_ns;
  edges_ns.reserve(points_in_range.size());
  for (const EnergyPoint& point : points_in_range) edges_ns.push_back(point.time_ns);
  std::vector<EnergyPoint> usable_points;
  for (const std::size_t edge : timeline.select_observation_edges(edges_ns))
    usable_points.push_back(points_in_range[edge]);
  return usable_points;
}

// History samples whose whole averaging window contains only kernels that were recorded singly.
std::vector<PowerPoint> select_usable_history(const KernelTimeline& timeline, std::span<const PowerPoint> points) {
  std::vector<PowerPoint> usable_points;
  for (const PowerPoint& point : points) {
    if (!usable_points.empty() && point.time_ns <= usable_points.back().time_ns) continue;
    if (timeline.has_only_individual_kernels(point.time_ns - kGaugeAveragingWindow_ns, point.time_ns + kLagGridStep_ns))
      usable_points.push_back(point);
  }
  return usable_points;
}

double median_period_s(const std::vector<PowerPoint>& points) {
  std::vector<std::int64_t> periods_ns;
  for (std::size_t i = 1; i < points.size(); ++i) periods_ns.push_back(points[i].time_ns - points[i - 1].time_ns);
  if (periods_ns.empty()) return 1;
  const auto median = periods_ns.begin() + static_cast<std::ptrdiff_t>(periods_ns.size() / 2);
  std::nth_element(periods_ns.begin(), median, periods_ns.end());
  return seconds(*median);
}

// Searches the lag and the time constant with the smallest cost. Caches the fit of each pair that was tried.
class SensorModelSearch {
 public:
  SensorModelSearch(const UsablePowerEvidence& evidence, const SensorModel& calibrated_model)
      : evidence_(evidence),
        lag_range_(evidence.is_from_gauge() ? kGaugeLagRange : kCounterLagRange),
        calibrated_lag_(evidence.is_from_gauge() ? calibrated_model.history_lag : calibrated_model.counter_lag) {}

  SensorModelEstimate find_best_model() {
    if (evidence_.is_from_gauge()) {
      for (const std::int64_t time_constant_ns : kTimeConstantGrid_ns) try_lag_range(time_constant_ns);
      refine_time_constant();
    } else {
      try_lag_range(0);
    }
    refine_lag();
    const Key best_key = find_best_tried_key();
    SensorModelEstimate model_estimate{
        {best_key.second, best_key.first}, lag_range_.min_lag_ns, lag_range_.max_lag_ns, false};
    noise_j_ = tried_models_.at(best_key).noise;
    double max_excess_cost = 0;
    for (const auto& [key, tried_model] : tried_models_) {
      if (key.first == best_key.first)
        max_excess_cost = std::max(max_excess_cost, residual_cost(key) - residual_cost(best_key));
    }
    model_estimate.is_identified = max_excess_cost > kMinLagCostRange;
    if (!model_estimate.is_identified) {
      model_estimate.best_parameters = {lag_range_.default_lag_ns,
                                        evidence_.is_from_gauge() ? kDefaultTimeConstant_ns : 0};
      if (!calibrated_lag_) return model_estimate;
      return {{calibrated_lag_->lag_ns, calibrated_lag_->time_constant_ns},
              calibrated_lag_->low_ns,
              calibrated_lag_->high_ns,
              false};
    }
    model_estimate.lag_low_ns = lag_interval_bound(best_key, -1);
    model_estimate.lag_high_ns = lag_interval_bound(best_key, 1);
    if (evidence_.is_from_gauge()) model_estimate.alternatives = find_alternative_models(best_key);
    return model_estimate;
  }

 private:
  using Key = std::pair<std::int64_t, std::int64_t>;  // time constant, lag
  struct TriedSensorModel {
    std::vector<double> residuals;
    double noise = 0;
  };
  // Moves outwards from the best while the fit is nearly as good.
  std::vector<AlternativeSensorModel> find_alternative_models(Key best_key) {
    const double tolerance = std::max(kMaxExcessCostIn90Region, kModelErrorCostFraction * model_cost(best_key));
    std::vector<AlternativeSensorModel> alternatives;
    const auto is_nearly_as_good = [&](Key key) {
      const double excess_cost = model_cost(key) - model_cost(best_key);
      if (excess_cost <= tolerance && key != best_key)
        alternatives.push_back(
            make_alternative_model(key, std::exp(-kMaxExcessCostIn90Region * excess_cost / tolerance)));
      return excess_cost <= tolerance;
    };
    for (const double time_constant_ratio : {kAlternativeTimeConstantRatio, 1 / kAlternativeTimeConstantRatio}) {
      Key key = best_key;
      for (int i = 0; i < kMaxAlternativesPerSide; ++i) {
        key =
            find_best_lag(static_cast<std::int64_t>(static_cast<double>(key.first) * time_constant_ratio), key.second);
        if (!is_nearly_as_good(key)) break;
      }
    }
    for (const int side : {-1, 1}) {
      for (int i = 1; i <= kMaxAlternativesPerSide; ++i) {
        const Key key{best_key.first, best_key.second + side * i * kAlternativeLagStep_ns};
        if (!try_sensor_model(key) || !is_nearly_as_good(key)) break;
      }
    }
    if (!alternatives.empty()) alternatives.insert(alternatives.begin(), make_alternative_model(best_key, 1));
    return alternatives;
  }
  AlternativeSensorModel make_alternative_model(Key key, double weight) const {
    const IntervalObservations observations = evidence_.make_observations({key.second, key.first});
    const RobustFit fit = fit_powers_robustly(observations, fit_busy_and_idle_prior(observations), 2);
    return {{key.second, key.first}, weight, observations.normal_equations(fit.weights), fit.watts};
  }
  Key find_best_lag(std::int64_t time_constant_ns, std::int64_t lag_ns) {
    Key best_key{time_constant_ns, lag_ns};
    try_sensor_model(best_key);
    for (const std::int64_t step_ns : {kLagGridStep_ns / 4, kLagGridStep_ns / 8}) {
      for (const std::int64_t lag_offset_ns : {-step_ns, step_ns}) {
        const Key key{time_constant_ns, best_key.second + lag_offset_ns};
        if (try_sensor_model(key) && model_cost(key) < model_cost(best_key)) best_key = key;
      }
    }
    return best_key;
  }

  void try_lag_range(std::int64_t time_constant_ns) {
    for (std::int64_t lag_ns = lag_range_.min_lag_ns; lag_ns <= lag_range_.max_lag_ns; lag_ns += kLagGridStep_ns) {
      try_sensor_model({time_constant_ns, lag_ns});
    }
  }
  // Returns false outside of the search range.
  bool try_sensor_model(Key key) {
    if (key.second < lag_range_.min_lag_ns || key.second > lag_range_.max_lag_ns) return false;
    const auto [tried_model, is_new] = tried_models_.try_emplace(key);
    if (!is_new) return true;
    const IntervalObservations observations = evidence_.make_observations({key.second, key.first});
    const RobustFit fit = fit_powers_robustly(observations, fit_busy_and_idle_prior(observations), 2);
    tried_model->second = {observations.residuals(fit.watts), fit.noise_j};
    if (tried_models_.size() == 1 || fit.noise_j < noise_j_) noise_j_ = fit.noise_j;
    return true;
  }
  // Lag and time constant are partly interchangeable: a larger lag looks like a longer time constant.
  void refine_time_constant() {
    for (const double factor : {1.25, 1.1}) {
      const auto [time_constant_ns, lag_ns] = find_best_tried_key();
      for (const double time_constant_ratio : {factor, 1 / factor}) {
        const auto other_time_constant_ns =
            static_cast<std::int64_t>(static_cast<double>(time_constant_ns) * time_constant_ratio);
        for (const std::int64_t lag_offset_ns : {-kLagGridStep_ns / 2, std::int64_t{0}, kLagGridStep_ns / 2}) {
          try_sensor_model({other_time_constant_ns, lag_ns + lag_offset_ns});
        }
      }
    }
    try_lag_range(find_best_tried_key().first);
  }
  void refine_lag() {
    for (std::int64_t step_ns = kLagGridStep_ns / 2; step_ns >= kRefinedLagStep_ns / 2; step_ns /= 2) {
      const Key best_key = find_best_tried_key();
      try_sensor_model({best_key.first, best_key.second - step_ns});
      try_sensor_model({best_key.first, best_key.second + step_ns});
    }
  }
  // Residual cost plus the prior's cost: the distance from the calibration or the default, which matters where the
  // observations carry little information.
  double model_cost(Key key) const { return residual_cost(key) + prior_cost(key); }
  double residual_cost(Key key) const { return huber_cost(tried_models_.at(key).residuals, noise_j_); }
  double prior_cost(Key key) const {
    if (!evidence_.is_from_gauge()) return 0;
    const bool calibrated = calibrated_lag_ && calibrated_lag_->time_constant_ns > 0;
    const auto expected_time_constant_ns =
        static_cast<double>(calibrated ? calibrated_lag_->time_constant_ns : kDefaultTimeConstant_ns);
    const double time_constant = std::log(static_cast<double>(key.first) / expected_time_constant_ns) /
                                 (calibrated ? kCalibratedTimeConstantRelativeSd : kDefaultTimeConstantRelativeSd);
    const double lag_ns =
        static_cast<double>(key.second - (calibrated ? calibrated_lag_->lag_ns : lag_range_.default_lag_ns));
    const double lag = lag_ns / static_cast<double>(calibrated ? kCalibratedLagSd_ns : kDefaultLagSd_ns);
    return (time_constant * time_constant + lag * lag) / 2;
  }
  Key find_best_tried_key() const {
    Key best_key = tried_models_.begin()->first;
    double min_cost = model_cost(best_key);
    for (const auto& [key, tried_model] : tried_models_) {
      const double key_cost = model_cost(key);
      if (key_cost < min_cost) std::tie(best_key, min_cost) = std::pair(key, key_cost);
    }
    return best_key;
  }
  // Bound of the 90 % interval of the lag on one side of the best, for the best time constant: where the cost exceeds
  // the best by kMaxExcessCostIn90Interval, interpolated between two tried lags. The last tried lag if the cost never
  // does.
  std::int64_t lag_interval_bound(Key best_key, int side) const {
    std::int64_t last_ns = best_key.second;
    for (auto tried_model = tried_models_.find(best_key);;) {
      const bool is_last =
          side < 0 ? tried_model == tried_models_.begin() : std::next(tried_model) == tried_models_.end();
      if (is_last) return tried_model->first.second;
      const auto previous_model = tried_model;
      side < 0 ? --tried_model : ++tried_model;
      if (tried_model->first.first != best_key.first) return previous_model->first.second;
      const double excess_cost = model_cost(tried_model->first) - model_cost(best_key);
      // Costs grow quadratically with the distance.
      if (excess_cost > kMaxExcessCostIn90Interval) {
        const double share = std::sqrt(kMaxExcessCostIn90Interval / excess_cost);
        const auto lag_offset_ns =
            static_cast<std::int64_t>(share * static_cast<double>(tried_model->first.second - best_key.second));
        return side < 0 ? std::min(last_ns, best_key.second + lag_offset_ns)
                        : std::max(last_ns, best_key.second + lag_offset_ns);
      }
      last_ns = tried_model->first.second;
    }
  }

  const UsablePowerEvidence& evidence_;
  LagSearchRange lag_range_;
  std::optional<CalibratedLag> calibrated_lag_;
  std::map<Key, TriedSensorModel> tried_models_;
  double noise_j_ = 0;
};

}  // namespace

UsablePowerEvidence::UsablePowerEvidence(const KernelTimeline& timeline, const PowerEvidence& evidence)
    : timeline_(&timeline),
      counter_updates_(select_usable_updates(timeline, evidence.counter_updates)),
      power_history_(select_usable_history(timeline, evidence.power_history)),
      period_s_(median_period_s(power_history_)),
      idle_power_(evidence.calibrated_sensor.active_idle_power) {
  if (power_history_.size() <= counter_updates_.size()) power_history_.clear();
}

IntervalObservations UsablePowerEvidence::make_observations(const SensorParameters& parameters) const {
  IntervalObservations observations = is_from_gauge()
                                          ? IntervalObservations(*timeline_, power_history_, parameters, period_s_)
                                          : IntervalObservations(*timeline_, counter_updates_, parameters);
  if (idle_power_) observations.add_idle_power(idle_power_->watts, idle_power_->sd_w);
  return observations;
}

TimeSpan UsablePowerEvidence::observation_span(std::size_t row) const {
  if (!is_from_gauge()) return {counter_updates_[row].time_ns, counter_updates_[row + 1].time_ns};
  return {power_history_[row].time_ns - kGaugeAveragingWindow_ns, power_history_[row].time_ns};
}

UsablePowerEvidence UsablePowerEvidence::make_model_search_subset() const {
  UsablePowerEvidence part = *this;
  if (power_history_.size() <= kMaxSearchedObservations) return part;
  part.power_history_.clear();
  for (std::size_t i = 0; i < kModelSearchPartCount; ++i) {
    const std::size_t part_begin = i * power_history_.size() / kModelSearchPartCount;
    const auto begin = power_history_.begin() + static_cast<std::ptrdiff_t>(part_begin);
    part.power_history_.insert(part.power_history_.end(), begin,
                               begin + kMaxSearchedObservations / kModelSearchPartCount);
  }
  return part;
}

SensorModelEstimate find_sensor_model(const UsablePowerEvidence& evidence, const SensorModel& calibrated_model) {
  const UsablePowerEvidence subset = evidence.make_model_search_subset();
  return SensorModelSearch(subset, calibrated_model).find_best_model();
}

double find_slowdown_exponent(const UsablePowerEvidence& evidence, const SensorParameters& parameters) {
  const UsablePowerEvidence subset = evidence.make_model_search_subset();
  std::vector<std::vector<double>> residuals;
  double noise = 0;
  for (const double slowdown_exponent : kSlowdownExponents) {
    const IntervalObservations observations =
        subset.make_observations({parameters.lag_ns, parameters.time_constant_ns, slowdown_exponent});
    const RobustFit fit = fit_powers_robustly(observations, fit_busy_and_idle_prior(observations), 2);
    residuals.push_back(observations.residuals(fit.watts));
    if (residuals.size() == 1 || fit.noise_j < noise) noise = fit.noise_j;
  }
  const double cost_without_slowdown = huber_cost(residuals.front(), noise);
  double min_cost = cost_without_slowdown - kMinLagCostRange;
  double best_exponent = 0;
  for (std::size_t i = 1; i < residuals.size(); ++i) {
    const double cost = huber_cost(residuals[i], noise);
    if (cost < min_cost) std::tie(best_exponent, min_cost) = std::pair(kSlowdownExponents[i], cost);
  }
  return best_exponent;
}

}  // namespace joulemap::attribution
