// SPDX-License-Identifier: Apache-2.0
#include "attribution/power_regression.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "attribution/interval_rows.h"
#include "attribution/separable_groups.h"
#include "base/clock.h"

namespace joulemap::attribution {
namespace {

constexpr std::size_t kFewestRows = 8;  // to know how large the noise is

// Where a lag is looked for: no counter knows the future, but its steps are known to milliseconds only. On an H200 the
// energy counter lags by 10 ms, its power by 25 (100 ms refresh).
constexpr std::int64_t kLeastLag_ns = -5 * kNanosecondsPerMillisecond;
constexpr std::int64_t kMostLag_ns = 60 * kNanosecondsPerMillisecond;
constexpr std::int64_t kLagGrid_ns = 5 * kNanosecondsPerMillisecond;
constexpr std::int64_t kUsualLag_ns = 10 * kNanosecondsPerMillisecond;
constexpr std::int64_t kLagRefined_ns = kNanosecondsPerMillisecond / 4;
// In units of the noise's variance: half of chi squared with one degree of freedom. Flat: no lag is worse than another by
// more than chance does on the whole grid; unsure: the 90 % interval.
constexpr double kFlatCost = 6;
constexpr double kUnsureCost = 1.35;
// Half of a 90 % interval, in standard deviations.
constexpr double kNinety = 1.645;

constexpr std::size_t kMostBlocks = 200;
constexpr std::size_t kFewestPerBlock = 4;
constexpr std::uint64_t kSeed = 0x6A6F756C65;
// Once it is known what can be told apart, beliefs need only keep it solvable.
constexpr double kKnownPull = 0.01;
// What a class may differ from the mean that it is given: blocks of a ResNet-50 on an H200 differ from their share of time
// by -9 to +19 %, single kernels by more.
constexpr double kTimeShareSpread = 0.3;

// A GPU that works draws no less than one that waits. Where rows say so, a few odd ones have misled them.
constexpr double kLeastBusy = 0.9;
// A standard deviation of what the counter is wrong by as a whole, until a calibration tells: on an H200 the counter and the
// integral of its power differ by 0.76 %.
constexpr double kGainSpread = 0.005;

// Numbers that are the same with every library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  double uniform() { return (static_cast<double>(engine_() >> 11) + 0.5) * 0x1p-53; }
  double exponential() { return -std::log(uniform()); }
  double normal() { return std::sqrt(2 * exponential()) * std::cos(2 * M_PI * uniform()); }

 private:
  std::mt19937_64 engine_;
};

struct Lag {
  std::int64_t best_ns = kUsualLag_ns;
  std::int64_t low_ns = kLeastLag_ns;
  std::int64_t high_ns = kMostLag_ns;
  bool known = false;
};

// How badly each lag fits. Tried ones are kept: refining asks for some again.
class LagSearch {
 public:
  LagSearch(const KernelTimeline& timeline, std::span<const EnergyPoint> points)
      : timeline_(timeline), points_(points) {}

  Lag find() {
    for (std::int64_t lag_ns = kLeastLag_ns; lag_ns <= kMostLag_ns; lag_ns += kLagGrid_ns) try_lag(lag_ns);
    for (std::int64_t step_ns = kLagGrid_ns / 2; step_ns >= kLagRefined_ns / 2; step_ns /= 2) {
      const std::int64_t best_ns = best();
      try_lag(best_ns - step_ns);
      try_lag(best_ns + step_ns);
    }
    Lag lag;
    lag.best_ns = best();
    noise_ = tried_.at(lag.best_ns).noise;
    double most = 0;
    for (std::int64_t at_ns = kLeastLag_ns; at_ns <= kMostLag_ns; at_ns += kLagGrid_ns) {
      most = std::max(most, cost(at_ns) - cost(lag.best_ns));
    }
    lag.known = most > kFlatCost;
    if (!lag.known) return {};
    lag.low_ns = crossing(lag.best_ns, -1);
    lag.high_ns = crossing(lag.best_ns, 1);
    return lag;
  }

 private:
  struct Tried {
    std::vector<double> residuals;
    double noise = 0;
  };

  void try_lag(std::int64_t lag_ns) {
    if (lag_ns < kLeastLag_ns || lag_ns > kMostLag_ns) return;
    const auto [tried, is_new] = tried_.try_emplace(lag_ns);
    if (!is_new) return;
    const IntervalRows rows(timeline_, points_, lag_ns);
    const RobustFit fit = robust_fit(rows, coarse_belief(rows), 2);
    tried->second = {rows.residuals(fit.watts), fit.noise};
    if (tried_.size() == 1 || fit.noise < noise_) noise_ = fit.noise;
  }
  double cost(std::int64_t lag_ns) const { return huber_cost(tried_.at(lag_ns).residuals, noise_); }
  std::int64_t best() const {
    std::int64_t best_ns = tried_.begin()->first;
    for (const auto& [lag_ns, tried] : tried_) {
      if (cost(lag_ns) < cost(best_ns)) best_ns = lag_ns;
    }
    return best_ns;
  }
  // Where the fit becomes worse than chance allows, on one side of the best: between two that were tried.
  std::int64_t crossing(std::int64_t best_ns, int side) const {
    std::int64_t last_ns = best_ns;
    for (auto at = tried_.find(best_ns);;) {
      if (side < 0 ? at == tried_.begin() : std::next(at) == tried_.end()) return at->first;
      side < 0 ? --at : ++at;
      const double worse = cost(at->first) - cost(best_ns);
      // Costs rise as squares of the distance.
      if (worse > kUnsureCost) {
        const double share = std::sqrt(kUnsureCost / worse);
        const auto away_ns = static_cast<std::int64_t>(share * static_cast<double>(at->first - best_ns));
        return side < 0 ? std::min(last_ns, best_ns + away_ns) : std::max(last_ns, best_ns + away_ns);
      }
      last_ns = at->first;
    }
  }

  const KernelTimeline& timeline_;
  std::span<const EnergyPoint> points_;
  std::map<std::int64_t, Tried> tried_;
  double noise_ = 0;
};

// From the first kernel on: before it a GPU may sleep, which tells nothing of its idling between kernels.
std::vector<EnergyPoint> useful_points(const KernelTimeline& timeline, std::span<const EnergyPoint> points) {
  std::vector<EnergyPoint> within;
  for (const EnergyPoint& point : points) {
    if (point.time_ns < timeline.begin_ns() - kMostLag_ns) continue;
    if (!within.empty() && point.time_ns <= within.back().time_ns) continue;
    within.push_back(point);
    if (point.time_ns > timeline.end_ns() + kMostLag_ns) break;
  }
  std::vector<std::int64_t> edges_ns;
  edges_ns.reserve(within.size());
  for (const EnergyPoint& point : within) edges_ns.push_back(point.time_ns);
  std::vector<EnergyPoint> useful;
  for (const std::size_t edge : timeline.useful_edges(edges_ns)) useful.push_back(within[edge]);
  return useful;
}

// Where not one class can be told from the others, a group of them that could be is chance or the edge of a step: all
// share by time, apart from idling if that is known.
SeparableGroups groups_of(const statistics::GramSums& sums, double pull, const std::vector<double>& times_s) {
  SeparableGroups found = separable_groups(sums, pull, times_s);
  const std::size_t classes = found.group_of.size() - 1;
  for (std::size_t k = 0; k < classes; ++k) {
    if (found.alone[k] >= kKnownFromData) return found;
  }
  std::vector<std::size_t> together(classes + 1, 0);
  together.back() = found.alone.back() >= kKnownFromData ? 1 : 0;
  const std::size_t count = together.back() + 1;
  const std::vector<statistics::Belief> beliefs(count, statistics::Belief{0, pull});
  const std::vector<double> inverse = statistics::posterior_inverse(sums.grouped(together, count), beliefs);
  std::vector<double> from_data;
  for (std::size_t i = 0; i < count; ++i) from_data.push_back(1 - pull * inverse[i * count + i]);
  return {together, count, from_data, found.alone};
}

// The fit once it is known what can be told apart.
class GroupedFit {
 public:
  GroupedFit(const PowerBelief& belief, double pull, const SeparableGroups& groups) : groups_(groups) {
    std::vector<std::size_t> members(groups.groups);
    for (const std::size_t group : groups.group_of) ++members[group];
    for (std::size_t group = 0; group < groups.groups; ++group) {
      const bool known = groups.from_data[group] >= kKnownFromData;
      beliefs_.push_back({belief.busy_w, pull * (known ? kKnownPull : 1)});
    }
    const std::size_t idle = groups.group_of.back();
    if (members[idle] == 1) beliefs_[idle].value = belief.idle_w;
    for (const double share : groups.alone) alone_.push_back(share >= kKnownFromData);
  }
  std::vector<double> solve(const statistics::GramSums& grouped) const {
    const std::vector<double> watts = statistics::nonnegative_least_squares(grouped, beliefs_).x;
    std::vector<double> all;
    for (const std::size_t group : groups_.group_of) all.push_back(watts[group]);
    return all;
  }
  statistics::GramSums grouped(const statistics::GramSums& sums) const {
    return sums.grouped(groups_.group_of, groups_.groups);
  }
  bool is_known_alone(std::size_t column) const { return alone_[column]; }

 private:
  const SeparableGroups& groups_;
  std::vector<statistics::Belief> beliefs_;
  std::vector<bool> alone_;
};

// Weights of rows as if there had been no probing.
std::vector<double> weights_without(std::span<const TimeSpan> probing, std::span<const EnergyPoint> points,
                                    std::vector<double> weights, std::int64_t lag_ns) {
  for (std::size_t row = 0; row < weights.size(); ++row) {
    for (const TimeSpan& span : probing) {
      const bool before = points[row + 1].time_ns - lag_ns <= span.begin_ns;
      if (!before && points[row].time_ns - lag_ns < span.end_ns) weights[row] = 0;
    }
  }
  return weights;
}

// By class: whether it is known without the probing, too.
std::vector<bool> known_without(std::span<const TimeSpan> probing, std::span<const EnergyPoint> points,
                                const IntervalRows& rows, const RobustFit& fit, std::int64_t lag_ns) {
  std::vector<bool> known(rows.columns(), true);
  if (probing.empty()) return known;
  const statistics::GramSums sums = rows.sums(weights_without(probing, points, fit.weights, lag_ns));
  const SeparableGroups groups = separable_groups(sums, fit.pull, rows.times_s());
  for (std::size_t k = 0; k < known.size(); ++k) known[k] = groups.alone[k] >= kKnownFromData;
  return known;
}

class Replication {
 public:
  Replication(const IntervalRows& rows, const RobustFit& robust, const GroupedFit& fit) : fit_(fit) {
    const std::size_t count = std::clamp<std::size_t>(rows.size() / kFewestPerBlock, 2, kMostBlocks);
    for (std::size_t i = 0; i < count; ++i) {
      blocks_.push_back(fit.grouped(rows.sums(robust.weights, i * rows.size() / count, (i + 1) * rows.size() / count)));
    }
  }

  // `watts`: what was found. `lag_w`: what one standard deviation of the lag changes. By class, then by replicate.
  std::vector<std::vector<double>> draw(const std::vector<double>& watts, const std::vector<double>& lag_w,
                                        double used) {
    // What was fitted with as many unknowns follows the blocks' noise: errors look smaller than they are.
    const double blocks = static_cast<double>(blocks_.size());
    const double wider = robust_wider_ * std::sqrt(blocks / std::max(blocks - used, 1.0));
    std::vector<std::vector<double>> drawn(watts.size(), std::vector<double>(kReplicates));
    for (std::size_t r = 0; r < kReplicates; ++r) {
      statistics::GramSums sums(blocks_.front().size());
      for (const statistics::GramSums& block : blocks_) sums.add(block, random_.exponential());
      const std::vector<double> found = fit_.solve(sums);
      const double lag = random_.normal();
      for (std::size_t k = 0; k < watts.size(); ++k) {
        const double spread_w = fit_.is_known_alone(k) ? 0 : kTimeShareSpread * watts[k] * random_.normal();
        drawn[k][r] = std::max(watts[k] + wider * (found[k] - watts[k]) + lag * lag_w[k] + spread_w, 0.0);
      }
    }
    return drawn;
  }

 private:
  const GroupedFit& fit_;
  std::vector<statistics::GramSums> blocks_;
  double robust_wider_ = 1;
  Random random_{kSeed};
};

}  // namespace

std::pair<double, double> middle_of(std::vector<double> values, double share) {
  const double out = (1 - share) / 2 * static_cast<double>(values.size());
  const auto low = std::min(static_cast<std::size_t>(out), values.size() - 1);
  const std::size_t high = values.size() - 1 - low;
  std::sort(values.begin(), values.end());
  return {values[std::min(low, high)], values[std::max(low, high)]};
}

PowerFit alike_powers(std::size_t classes) {
  PowerFit fit;
  Random random(kSeed);
  for (std::size_t k = 0; k < classes + 1; ++k) {
    std::vector<double>& drawn = fit.replicates.emplace_back();
    for (std::size_t r = 0; r < kReplicates; ++r)
      drawn.push_back(std::max(1 + kTimeShareSpread * random.normal(), 0.0));
    const auto [low, high] = middle_of(drawn, 0.9);
    fit.classes.push_back({1, low, high, 0, false, false});
  }
  for (std::size_t r = 0; r < kReplicates; ++r) fit.gains.push_back(1 + kGainSpread * random.normal());
  fit.groups = 1;
  return fit;
}

std::optional<PowerFit> fit_powers(const KernelTimeline& timeline, std::span<const EnergyPoint> points,
                                   std::span<const TimeSpan> probing) {
  const std::vector<EnergyPoint> used = useful_points(timeline, points);
  if (timeline.empty() || used.size() < kFewestRows + 1) return std::nullopt;
  const Lag lag = LagSearch(timeline, used).find();
  const IntervalRows rows(timeline, used, lag.best_ns);
  const PowerBelief belief = coarse_belief(rows);
  if (belief.busy_w < kLeastBusy * belief.idle_w) return std::nullopt;
  const RobustFit robust = robust_fit(rows, belief, 5);
  const statistics::GramSums sums = rows.sums(robust.weights);
  const SeparableGroups groups = groups_of(sums, robust.pull, rows.times_s());
  const GroupedFit grouped(belief, robust.pull, groups);
  const std::vector<double> watts = grouped.solve(grouped.grouped(sums));
  const auto watts_at = [&](std::int64_t lag_ns) {
    return grouped.solve(grouped.grouped(IntervalRows(timeline, used, lag_ns).sums(robust.weights)));
  };
  const std::vector<double> low_w = watts_at(lag.low_ns);
  const std::vector<double> high_w = watts_at(lag.high_ns);
  std::vector<double> lag_w;
  for (std::size_t k = 0; k < watts.size(); ++k) lag_w.push_back((high_w[k] - low_w[k]) / 2 / kNinety);

  PowerFit fit;
  double told = 0;
  for (const double share : groups.from_data) told += share;
  fit.replicates = Replication(rows, robust, grouped).draw(watts, lag_w, told);
  const std::vector<bool> without = known_without(probing, used, rows, robust, lag.best_ns);
  Random random(kSeed + 1);
  for (std::size_t r = 0; r < kReplicates; ++r) fit.gains.push_back(1 + kGainSpread * random.normal());
  for (std::size_t k = 0; k < watts.size(); ++k) {
    std::vector<double> drawn = fit.replicates[k];
    for (std::size_t r = 0; r < kReplicates; ++r) drawn[r] *= fit.gains[r];
    const auto [low, high] = middle_of(std::move(drawn), 0.9);
    const bool known = grouped.is_known_alone(k);
    fit.classes.push_back({watts[k], low, high, groups.alone[k], known, known && !without[k]});
  }
  fit.lag_ns = lag.best_ns;
  fit.lag_low_ns = lag.low_ns;
  fit.lag_high_ns = lag.high_ns;
  fit.lag_known = lag.known;
  fit.residual_j = robust.noise;
  fit.rows = rows.size();
  fit.groups = groups.groups;
  return fit;
}

}  // namespace joulemap::attribution
