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

constexpr std::int64_t kMs = kNanosecondsPerMillisecond;

// Search range of the lag. It includes negative lags, because timestamps are only accurate to milliseconds. On an H200
// the energy counter lags by 10 ms; the power history, every 20 ms, has a time constant of 12 to 15 ms and almost no
// lag.
struct Range {
  std::int64_t least_ns;
  std::int64_t most_ns;
  std::int64_t usual_ns;
};
constexpr Range kCounterLag{-5 * kMs, 60 * kMs, kUsualCounterLag_ns};
constexpr Range kGaugeLag{-15 * kMs, 25 * kMs, 0};
constexpr std::int64_t kLagGrid_ns = 5 * kMs;
constexpr std::int64_t kLagRefined_ns = kMs / 4;
constexpr std::int64_t kDefaultTimeConstant_ns = 12 * kMs;
// Prior standard deviations of a gauge's time constant (relative) and lag: about the default values or, where there is
// a calibration, about the calibrated ones.
constexpr double kTimeConstantSpread = 0.3;
constexpr double kCalibratedTimeConstantSpread = 0.06;
constexpr std::int64_t kLagSpread_ns = 5 * kMs;
constexpr std::int64_t kCalibratedLagSpread_ns = kMs;
constexpr std::int64_t kTimeConstants_ns[] = {4 * kMs, 8 * kMs, 12 * kMs, 18 * kMs, 27 * kMs};
// Power that is older than this does not matter to a gauge: about five times the longest time constant in the grid.
constexpr std::int64_t kAveragingWindow_ns = 130 * kMs;
// Differences of cost, in units of the noise variance (half of chi squared with one degree of freedom). If the cost
// varies by less than kFlatCost over all lags, no lag fits better than another. kUnsureCost bounds its 90 % interval.
constexpr double kFlatCost = 6;
constexpr double kUnsureCost = 1.35;
// kUnsureOfTwo bounds the 90 % region of lag and time constant together. Sensor models are approximate: one whose cost
// is higher than the best by less than kModelCost of the total cost is not distinguished from the best either.
constexpr double kUnsureOfTwo = 2.3;
constexpr double kModelCost = 0.001;
// Alternative sensor models: factor between time constants, distance between lags, and most of them to either side.
constexpr double kTimeConstantStep = 1.2;
constexpr std::int64_t kLagStep_ns = 5 * kMs / 4;
constexpr int kMaxAlternatives = 6;
// Power is proportional to frequency times voltage squared, and voltage falls with frequency: exponent 3, or a little
// more where other units idle while they wait.
constexpr double kSlowdownExponents[] = {0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5};

// This many observations, from a few separate parts of the run, suffice to estimate two parameters.
constexpr std::size_t kSearchedRows = 2400;
constexpr std::size_t kSearchedSlices = 6;

// From the first kernel on: before it the GPU may be in a sleep state, whose power differs from idle between kernels.
std::vector<EnergyPoint> usable_updates(const KernelTimeline& timeline, std::span<const EnergyPoint> points) {
  std::vector<EnergyPoint> in_range;
  for (const EnergyPoint& point : points) {
    if (point.time_ns < timeline.begin_ns() - kCounterLag.most_ns) continue;
    if (!in_range.empty() && point.time_ns <= in_range.back().time_ns) continue;
    in_range.push_back(point);
    if (point.time_ns > timeline.end_ns() + kCounterLag.most_ns) break;
  }
  std::vector<std::int64_t> edges_ns;
  edges_ns.reserve(in_range.size());
  for (const EnergyPoint& point : in_range) edges_ns.push_back(point.time_ns);
  std::vector<EnergyPoint> useful;
  for (const std::size_t edge : timeline.useful_edges(edges_ns)) useful.push_back(in_range[edge]);
  return useful;
}

// History samples whose whole averaging window contains only kernels that were recorded singly.
std::vector<PowerPoint> usable_history(const KernelTimeline& timeline, std::span<const PowerPoint> points) {
  std::vector<PowerPoint> useful;
  for (const PowerPoint& point : points) {
    if (!useful.empty() && point.time_ns <= useful.back().time_ns) continue;
    if (timeline.is_detailed(point.time_ns - kAveragingWindow_ns, point.time_ns + kLagGrid_ns)) useful.push_back(point);
  }
  return useful;
}

double usual_period_s(const std::vector<PowerPoint>& points) {
  std::vector<std::int64_t> apart_ns;
  for (std::size_t i = 1; i < points.size(); ++i) apart_ns.push_back(points[i].time_ns - points[i - 1].time_ns);
  if (apart_ns.empty()) return 1;
  const auto median = apart_ns.begin() + static_cast<std::ptrdiff_t>(apart_ns.size() / 2);
  std::nth_element(apart_ns.begin(), median, apart_ns.end());
  return seconds(*median);
}

// Searches the lag and the time constant with the smallest cost. Caches the fit of each pair that was tried.
class SensorModelSearch {
 public:
  SensorModelSearch(const UsableEvidence& evidence, const SensorModel& known)
      : evidence_(evidence),
        range_(evidence.is_gauge() ? kGaugeLag : kCounterLag),
        calibrated_(evidence.is_gauge() ? known.history : known.counter) {}

  SensorModelEstimate find() {
    if (evidence_.is_gauge()) {
      for (const std::int64_t time_constant_ns : kTimeConstants_ns) try_lags(time_constant_ns);
      refine_time_constant();
    } else {
      try_lags(0);
    }
    refine_lag();
    const Key best = best_key();
    SensorModelEstimate found{{best.second, best.first}, range_.least_ns, range_.most_ns, false};
    noise_ = tried_.at(best).noise;
    double most = 0;
    for (const auto& [key, tried] : tried_) {
      if (key.first == best.first) most = std::max(most, residual_cost(key) - residual_cost(best));
    }
    found.is_identified = most > kFlatCost;
    if (!found.is_identified) {
      found.best = {range_.usual_ns, evidence_.is_gauge() ? kDefaultTimeConstant_ns : 0};
      if (!calibrated_) return found;
      return {{calibrated_->lag_ns, calibrated_->time_constant_ns}, calibrated_->low_ns, calibrated_->high_ns, false};
    }
    found.lag_low_ns = crossing(best, -1);
    found.lag_high_ns = crossing(best, 1);
    if (evidence_.is_gauge()) found.alternatives = alternatives_to(best);
    return found;
  }

 private:
  using Key = std::pair<std::int64_t, std::int64_t>;  // time constant, lag
  struct Tried {
    std::vector<double> residuals;
    double noise = 0;
  };
  // Moves outwards from the best while the fit is nearly as good.
  std::vector<AlternativeSensorModel> alternatives_to(Key best) {
    const double tolerance = std::max(kUnsureOfTwo, kModelCost * cost(best));
    std::vector<AlternativeSensorModel> alternatives;
    const auto is_near = [&](Key key) {
      const double worse = cost(key) - cost(best);
      if (worse <= tolerance && key != best)
        alternatives.push_back(alternative(key, std::exp(-kUnsureOfTwo * worse / tolerance)));
      return worse <= tolerance;
    };
    for (const double by : {kTimeConstantStep, 1 / kTimeConstantStep}) {
      Key key = best;
      for (int i = 0; i < kMaxAlternatives; ++i) {
        key = best_lag_for(static_cast<std::int64_t>(static_cast<double>(key.first) * by), key.second);
        if (!is_near(key)) break;
      }
    }
    for (const int side : {-1, 1}) {
      for (int i = 1; i <= kMaxAlternatives; ++i) {
        const Key key{best.first, best.second + side * i * kLagStep_ns};
        if (!try_sensor_model(key) || !is_near(key)) break;
      }
    }
    if (!alternatives.empty()) alternatives.insert(alternatives.begin(), alternative(best, 1));
    return alternatives;
  }
  AlternativeSensorModel alternative(Key key, double weight) const {
    const IntervalObservations observations = evidence_.observations_with({key.second, key.first});
    const RobustFit fit = robust_fit(observations, busy_and_idle_prior(observations), 2);
    return {{key.second, key.first}, weight, observations.sums(fit.weights), fit.watts};
  }
  Key best_lag_for(std::int64_t time_constant_ns, std::int64_t lag_ns) {
    Key best{time_constant_ns, lag_ns};
    try_sensor_model(best);
    for (const std::int64_t step_ns : {kLagGrid_ns / 4, kLagGrid_ns / 8}) {
      for (const std::int64_t away_ns : {-step_ns, step_ns}) {
        const Key key{time_constant_ns, best.second + away_ns};
        if (try_sensor_model(key) && cost(key) < cost(best)) best = key;
      }
    }
    return best;
  }

  void try_lags(std::int64_t time_constant_ns) {
    for (std::int64_t lag_ns = range_.least_ns; lag_ns <= range_.most_ns; lag_ns += kLagGrid_ns) {
      try_sensor_model({time_constant_ns, lag_ns});
    }
  }
  // Returns false outside of the search range.
  bool try_sensor_model(Key key) {
    if (key.second < range_.least_ns || key.second > range_.most_ns) return false;
    const auto [tried, is_new] = tried_.try_emplace(key);
    if (!is_new) return true;
    const IntervalObservations observations = evidence_.observations_with({key.second, key.first});
    const RobustFit fit = robust_fit(observations, busy_and_idle_prior(observations), 2);
    tried->second = {observations.residuals(fit.watts), fit.noise};
    if (tried_.size() == 1 || fit.noise < noise_) noise_ = fit.noise;
    return true;
  }
  // Lag and time constant are partly interchangeable: a larger lag looks like a longer time constant.
  void refine_time_constant() {
    for (const double factor : {1.25, 1.1}) {
      const auto [time_constant_ns, lag_ns] = best_key();
      for (const double by : {factor, 1 / factor}) {
        const auto other_ns = static_cast<std::int64_t>(static_cast<double>(time_constant_ns) * by);
        for (const std::int64_t away_ns : {-kLagGrid_ns / 2, std::int64_t{0}, kLagGrid_ns / 2}) {
          try_sensor_model({other_ns, lag_ns + away_ns});
        }
      }
    }
    try_lags(best_key().first);
  }
  void refine_lag() {
    for (std::int64_t step_ns = kLagGrid_ns / 2; step_ns >= kLagRefined_ns / 2; step_ns /= 2) {
      const Key best = best_key();
      try_sensor_model({best.first, best.second - step_ns});
      try_sensor_model({best.first, best.second + step_ns});
    }
  }
  // Residual cost plus the prior's cost: the distance from the calibration or the default, which matters where the
  // observations carry little information.
  double cost(Key key) const { return residual_cost(key) + prior_cost(key); }
  double residual_cost(Key key) const { return huber_cost(tried_.at(key).residuals, noise_); }
  double prior_cost(Key key) const {
    if (!evidence_.is_gauge()) return 0;
    const bool calibrated = calibrated_ && calibrated_->time_constant_ns > 0;
    const auto usual_ns = static_cast<double>(calibrated ? calibrated_->time_constant_ns : kDefaultTimeConstant_ns);
    const double time_constant = std::log(static_cast<double>(key.first) / usual_ns) /
                                 (calibrated ? kCalibratedTimeConstantSpread : kTimeConstantSpread);
    const double lag_ns = static_cast<double>(key.second - (calibrated ? calibrated_->lag_ns : range_.usual_ns));
    const double lag = lag_ns / static_cast<double>(calibrated ? kCalibratedLagSpread_ns : kLagSpread_ns);
    return (time_constant * time_constant + lag * lag) / 2;
  }
  Key best_key() const {
    Key best = tried_.begin()->first;
    double least = cost(best);
    for (const auto& [key, tried] : tried_) {
      const double key_cost = cost(key);
      if (key_cost < least) std::tie(best, least) = std::pair(key, key_cost);
    }
    return best;
  }
  // Bound of the 90 % interval of the lag on one side of the best, for the best time constant: where the cost exceeds
  // the best by kUnsureCost, interpolated between two tried lags. The last tried lag if the cost never does.
  std::int64_t crossing(Key best, int side) const {
    std::int64_t last_ns = best.second;
    for (auto at = tried_.find(best);;) {
      const bool is_last = side < 0 ? at == tried_.begin() : std::next(at) == tried_.end();
      if (is_last) return at->first.second;
      const auto before = at;
      side < 0 ? --at : ++at;
      if (at->first.first != best.first) return before->first.second;
      const double worse = cost(at->first) - cost(best);
      // Costs grow quadratically with the distance.
      if (worse > kUnsureCost) {
        const double share = std::sqrt(kUnsureCost / worse);
        const auto away_ns = static_cast<std::int64_t>(share * static_cast<double>(at->first.second - best.second));
        return side < 0 ? std::min(last_ns, best.second + away_ns) : std::max(last_ns, best.second + away_ns);
      }
      last_ns = at->first.second;
    }
  }

  const UsableEvidence& evidence_;
  Range range_;
  std::optional<CalibratedLag> calibrated_;
  std::map<Key, Tried> tried_;
  double noise_ = 0;
};

}  // namespace

UsableEvidence::UsableEvidence(const KernelTimeline& timeline, const PowerEvidence& evidence)
    : timeline_(&timeline),
      counter_updates_(usable_updates(timeline, evidence.counter_updates)),
      power_history_(usable_history(timeline, evidence.power_history)),
      period_s_(usual_period_s(power_history_)),
      idle_(evidence.calibrated.active_idle) {
  if (power_history_.size() <= counter_updates_.size()) power_history_.clear();
}

IntervalObservations UsableEvidence::observations_with(const SensorParameters& parameters) const {
  IntervalObservations observations = is_gauge()
                                          ? IntervalObservations(*timeline_, power_history_, parameters, period_s_)
                                          : IntervalObservations(*timeline_, counter_updates_, parameters);
  if (idle_) observations.add_idle_power(idle_->watts, idle_->spread_w);
  return observations;
}

TimeSpan UsableEvidence::span_of(std::size_t row) const {
  if (!is_gauge()) return {counter_updates_[row].time_ns, counter_updates_[row + 1].time_ns};
  return {power_history_[row].time_ns - kAveragingWindow_ns, power_history_[row].time_ns};
}

UsableEvidence UsableEvidence::subset() const {
  UsableEvidence part = *this;
  if (power_history_.size() <= kSearchedRows) return part;
  part.power_history_.clear();
  for (std::size_t i = 0; i < kSearchedSlices; ++i) {
    const std::size_t from = i * power_history_.size() / kSearchedSlices;
    const auto begin = power_history_.begin() + static_cast<std::ptrdiff_t>(from);
    part.power_history_.insert(part.power_history_.end(), begin, begin + kSearchedRows / kSearchedSlices);
  }
  return part;
}

SensorModelEstimate find_sensor_model(const UsableEvidence& evidence, const SensorModel& known) {
  const UsableEvidence subset = evidence.subset();
  return SensorModelSearch(subset, known).find();
}

double find_slowdown_exponent(const UsableEvidence& evidence, const SensorParameters& parameters) {
  const UsableEvidence subset = evidence.subset();
  std::vector<std::vector<double>> residuals;
  double noise = 0;
  for (const double slowdown_exponent : kSlowdownExponents) {
    const IntervalObservations observations =
        subset.observations_with({parameters.lag_ns, parameters.time_constant_ns, slowdown_exponent});
    const RobustFit fit = robust_fit(observations, busy_and_idle_prior(observations), 2);
    residuals.push_back(observations.residuals(fit.watts));
    if (residuals.size() == 1 || fit.noise < noise) noise = fit.noise;
  }
  const double without = huber_cost(residuals.front(), noise);
  double least = without - kFlatCost;
  double best = 0;
  for (std::size_t i = 1; i < residuals.size(); ++i) {
    const double cost = huber_cost(residuals[i], noise);
    if (cost < least) std::tie(best, least) = std::pair(kSlowdownExponents[i], cost);
  }
  return best;
}

}  // namespace joulemap::attribution
