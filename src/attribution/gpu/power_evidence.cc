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

// Search range of the lag. It is negative by a little because timestamps are only accurate to milliseconds. On an H200
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
constexpr std::int64_t kUsualMemory_ns = 12 * kMs;
// Standard deviations of gauges about the default or, if "good", about the calibration; relative for the time constant.
constexpr double kMemorySpread = 0.3;
constexpr double kGoodMemory = 0.06;
constexpr std::int64_t kLagSpread_ns = 5 * kMs;
constexpr std::int64_t kGoodLag_ns = kMs;
constexpr std::int64_t kMemories_ns[] = {4 * kMs, 8 * kMs, 12 * kMs, 18 * kMs, 27 * kMs};
constexpr std::int64_t kLongestMemory_ns = 200 * kMs;
// In units of the noise variance: half of chi squared with one degree of freedom. Flat: the cost varies over the grid
// by no more than chance. Unsure: the 90 % interval.
constexpr double kFlatCost = 6;
constexpr double kUnsureCost = 1.35;
// The same with two unknowns. Sensor models are approximate: a sensor whose cost is higher by less than this fraction
// of the total residual cost is not distinguished from the best.
constexpr double kUnsureOfTwo = 2.3;
constexpr double kModelCost = 0.001;
// Step size and number of steps to either side when other time constants and lags are tried.
constexpr double kOtherMemory = 1.2;
constexpr std::int64_t kOtherLag_ns = 5 * kMs / 4;
constexpr int kMostOthers = 6;
// Power is proportional to frequency times voltage squared, and voltage falls with frequency: exponent 3, or a little
// more where other units idle while they wait.
constexpr double kPaces[] = {0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5};

// This many observations, in a few separate stretches, suffice to estimate two parameters.
constexpr std::size_t kSearchedRows = 2400;
constexpr std::size_t kSearchedStretches = 6;

// From the first kernel on: before it the GPU may be in a sleep state, whose power differs from idle between kernels.
std::vector<EnergyPoint> useful_steps(const KernelTimeline& timeline, std::span<const EnergyPoint> points) {
  std::vector<EnergyPoint> within;
  for (const EnergyPoint& point : points) {
    if (point.time_ns < timeline.begin_ns() - kCounterLag.most_ns) continue;
    if (!within.empty() && point.time_ns <= within.back().time_ns) continue;
    within.push_back(point);
    if (point.time_ns > timeline.end_ns() + kCounterLag.most_ns) break;
  }
  std::vector<std::int64_t> edges_ns;
  edges_ns.reserve(within.size());
  for (const EnergyPoint& point : within) edges_ns.push_back(point.time_ns);
  std::vector<EnergyPoint> useful;
  for (const std::size_t edge : timeline.useful_edges(edges_ns)) useful.push_back(within[edge]);
  return useful;
}

// Times before which all kernels were recorded singly for longer than any gauge's time constant matters.
std::vector<PowerPoint> useful_history(const KernelTimeline& timeline, std::span<const PowerPoint> points) {
  std::vector<PowerPoint> useful;
  for (const PowerPoint& point : points) {
    if (!useful.empty() && point.time_ns <= useful.back().time_ns) continue;
    if (timeline.is_detailed(point.time_ns - kLongestMemory_ns, point.time_ns + kLagGrid_ns)) useful.push_back(point);
  }
  return useful;
}

double usual_period_s(const std::vector<PowerPoint>& points) {
  std::vector<std::int64_t> apart_ns;
  for (std::size_t i = 1; i < points.size(); ++i) apart_ns.push_back(points[i].time_ns - points[i - 1].time_ns);
  if (apart_ns.empty()) return 1;
  const auto middle = apart_ns.begin() + static_cast<std::ptrdiff_t>(apart_ns.size() / 2);
  std::nth_element(apart_ns.begin(), middle, apart_ns.end());
  return seconds(*middle);
}

// Cost of each lag and time constant. Results are cached, because refinement asks for some again.
class SensorModelSearch {
 public:
  SensorModelSearch(const UsefulEvidence& evidence, const SensorModel& known)
      : evidence_(evidence),
        range_(evidence.is_gauge() ? kGaugeLag : kCounterLag),
        calibrated_(evidence.is_gauge() ? known.history : known.counter) {}

  FoundSensorModel find() {
    if (evidence_.is_gauge()) {
      for (const std::int64_t memory_ns : kMemories_ns) try_lags(memory_ns);
      refine_memory();
    } else {
      try_lags(0);
    }
    refine_lag();
    const Key best = best_key();
    FoundSensorModel found{{best.second, best.first}, range_.least_ns, range_.most_ns, false};
    noise_ = tried_.at(best).noise;
    double most = 0;
    for (const auto& [key, tried] : tried_) {
      if (key.first == best.first) most = std::max(most, told_cost(key) - told_cost(best));
    }
    found.known = most > kFlatCost;
    if (!found.known) {
      found.best = {range_.usual_ns, evidence_.is_gauge() ? kUsualMemory_ns : 0};
      if (!calibrated_) return found;
      return {{calibrated_->lag_ns, calibrated_->memory_ns}, calibrated_->low_ns, calibrated_->high_ns, false};
    }
    found.low_ns = crossing(best, -1);
    found.high_ns = crossing(best, 1);
    if (evidence_.is_gauge()) found.others = others_than(best);
    return found;
  }

 private:
  using Key = std::pair<std::int64_t, std::int64_t>;  // time constant, lag
  struct Tried {
    std::vector<double> residuals;
    double noise = 0;
  };
  // Moves outwards from the best while the fit is nearly as good.
  std::vector<AlternativeSensorModel> others_than(Key best) {
    const double tolerance = std::max(kUnsureOfTwo, kModelCost * cost(best));
    std::vector<AlternativeSensorModel> others;
    const auto is_near = [&](Key key) {
      const double worse = cost(key) - cost(best);
      if (worse <= tolerance && key != best) others.push_back(other(key, std::exp(-kUnsureOfTwo * worse / tolerance)));
      return worse <= tolerance;
    };
    for (const double by : {kOtherMemory, 1 / kOtherMemory}) {
      Key key = best;
      for (int i = 0; i < kMostOthers; ++i) {
        key = best_lag_for(static_cast<std::int64_t>(static_cast<double>(key.first) * by), key.second);
        if (!is_near(key)) break;
      }
    }
    for (const int side : {-1, 1}) {
      for (int i = 1; i <= kMostOthers; ++i) {
        const Key key{best.first, best.second + side * i * kOtherLag_ns};
        if (!try_sensor_model(key) || !is_near(key)) break;
      }
    }
    if (!others.empty()) others.insert(others.begin(), other(best, 1));
    return others;
  }
  AlternativeSensorModel other(Key key, double weight) const {
    const IntervalObservations rows = evidence_.rows_at({key.second, key.first});
    const RobustFit fit = robust_fit(rows, coarse_prior(rows), 2);
    return {{key.second, key.first}, weight, rows.sums(fit.weights), fit.watts};
  }
  Key best_lag_for(std::int64_t memory_ns, std::int64_t lag_ns) {
    Key best{memory_ns, lag_ns};
    try_sensor_model(best);
    for (const std::int64_t step_ns : {kLagGrid_ns / 4, kLagGrid_ns / 8}) {
      for (const std::int64_t away_ns : {-step_ns, step_ns}) {
        const Key key{memory_ns, best.second + away_ns};
        if (try_sensor_model(key) && cost(key) < cost(best)) best = key;
      }
    }
    return best;
  }

  void try_lags(std::int64_t memory_ns) {
    for (std::int64_t lag_ns = range_.least_ns; lag_ns <= range_.most_ns; lag_ns += kLagGrid_ns) {
      try_sensor_model({memory_ns, lag_ns});
    }
  }
  // Returns false outside of the search range.
  bool try_sensor_model(Key key) {
    if (key.second < range_.least_ns || key.second > range_.most_ns) return false;
    const auto [tried, is_new] = tried_.try_emplace(key);
    if (!is_new) return true;
    const IntervalObservations rows = evidence_.rows_at({key.second, key.first});
    const RobustFit fit = robust_fit(rows, coarse_prior(rows), 2);
    tried->second = {rows.residuals(fit.watts), fit.noise};
    if (tried_.size() == 1 || fit.noise < noise_) noise_ = fit.noise;
    return true;
  }
  // Lag and time constant are partly interchangeable: a larger lag looks like a longer time constant.
  void refine_memory() {
    for (const double factor : {1.25, 1.1}) {
      const auto [memory_ns, lag_ns] = best_key();
      for (const double by : {factor, 1 / factor}) {
        const auto other_ns = static_cast<std::int64_t>(static_cast<double>(memory_ns) * by);
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
  double cost(Key key) const { return told_cost(key) + unusual_cost(key); }
  double told_cost(Key key) const { return huber_cost(tried_.at(key).residuals, noise_); }
  double unusual_cost(Key key) const {
    if (!evidence_.is_gauge()) return 0;
    const bool calibrated = calibrated_ && calibrated_->memory_ns > 0;
    const auto usual_ns = static_cast<double>(calibrated ? calibrated_->memory_ns : kUsualMemory_ns);
    const double memory =
        std::log(static_cast<double>(key.first) / usual_ns) / (calibrated ? kGoodMemory : kMemorySpread);
    const double lag_ns = static_cast<double>(key.second - (calibrated ? calibrated_->lag_ns : range_.usual_ns));
    const double lag = lag_ns / static_cast<double>(calibrated ? kGoodLag_ns : kLagSpread_ns);
    return (memory * memory + lag * lag) / 2;
  }
  Key best_key() const {
    Key best = tried_.begin()->first;
    double least = cost(best);
    for (const auto& [key, tried] : tried_) {
      const double its = cost(key);
      if (its < least) std::tie(best, least) = std::pair(key, its);
    }
    return best;
  }
  // The lag on one side of the best at which the fit becomes significantly worse, interpolated between two tried ones.
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

  const UsefulEvidence& evidence_;
  Range range_;
  std::optional<KnownLag> calibrated_;
  std::map<Key, Tried> tried_;
  double noise_ = 0;
};

}  // namespace

UsefulEvidence::UsefulEvidence(const KernelTimeline& timeline, const PowerEvidence& evidence)
    : timeline_(&timeline),
      steps_(useful_steps(timeline, evidence.steps)),
      history_(useful_history(timeline, evidence.history)),
      period_s_(usual_period_s(history_)) {
  if (history_.size() <= steps_.size()) history_.clear();
}

IntervalObservations UsefulEvidence::rows_at(const Sensing& sensing) const {
  if (is_gauge()) return IntervalObservations(*timeline_, history_, sensing, period_s_);
  return IntervalObservations(*timeline_, steps_, sensing);
}

TimeSpan UsefulEvidence::span_of(std::size_t row) const {
  if (!is_gauge()) return {steps_[row].time_ns, steps_[row + 1].time_ns};
  return {history_[row].time_ns - kLongestMemory_ns, history_[row].time_ns};
}

UsefulEvidence UsefulEvidence::some() const {
  UsefulEvidence part = *this;
  if (history_.size() <= kSearchedRows) return part;
  part.history_.clear();
  for (std::size_t i = 0; i < kSearchedStretches; ++i) {
    const std::size_t from = i * history_.size() / kSearchedStretches;
    const auto begin = history_.begin() + static_cast<std::ptrdiff_t>(from);
    part.history_.insert(part.history_.end(), begin, begin + kSearchedRows / kSearchedStretches);
  }
  return part;
}

FoundSensorModel find_sensor_model(const UsefulEvidence& evidence, const SensorModel& known) {
  const UsefulEvidence some = evidence.some();
  return SensorModelSearch(some, known).find();
}

double find_slowdown_exponent(const UsefulEvidence& evidence, const Sensing& sensing) {
  const UsefulEvidence some = evidence.some();
  std::vector<std::vector<double>> left;
  double noise = 0;
  for (const double pace : kPaces) {
    const IntervalObservations rows = some.rows_at({sensing.lag_ns, sensing.memory_ns, pace});
    const RobustFit fit = robust_fit(rows, coarse_prior(rows), 2);
    left.push_back(rows.residuals(fit.watts));
    if (left.size() == 1 || fit.noise < noise) noise = fit.noise;
  }
  const double without = huber_cost(left.front(), noise);
  double least = without - kFlatCost;
  double best = 0;
  for (std::size_t i = 1; i < left.size(); ++i) {
    const double cost = huber_cost(left[i], noise);
    if (cost < least) std::tie(best, least) = std::pair(kPaces[i], cost);
  }
  return best;
}

}  // namespace joulemap::attribution
