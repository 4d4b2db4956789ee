// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/power_regression.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "attribution/gpu/interval_observations.h"
#include "attribution/gpu/power_evidence.h"
#include "attribution/gpu/sensor_model_uncertainty.h"
#include "attribution/gpu/separable_groups.h"
#include "base/clock.h"
#include "base/quadrature.h"
#include "statistics/random.h"

namespace joulemap::attribution {
namespace {

using statistics::Random;

constexpr std::size_t kFewestRows = 8;  // to estimate the noise

// Half width of a 90 % interval, in standard deviations.
constexpr double kNinety = 1.645;

constexpr std::size_t kMostBlocks = 200;
constexpr std::size_t kFewestPerBlock = 4;
constexpr std::uint64_t kSeed = 0x6A6F756C65;
// Relative deviation of a class from the mean power that it gets: blocks of a ResNet-50 on an H200 differ from a
// time-proportional split by -9 to +19 %, single kernels by more.
constexpr double kTimeShareSpread = 0.3;

// Relative deviation of a separated class from its power in the model: temperature, clocks, caches that a neighbour
// left warm, a sensor that differs from its model. Measured with mixtures of kernels on an H200
// (bench/h200/mixtures.py, seeds 1 and 3).
constexpr double kModelSpread = 0.025;

// A busy GPU uses no less power than an idle one. Observations that contradict this contain outliers.
constexpr double kLeastBusy = 0.9;

bool tells_any(const SeparableGroups& groups) {
  const auto is_known = [](double share) { return share >= kKnownFromData; };
  return std::any_of(groups.alone.begin(), groups.alone.end() - 1, is_known);
}

// `watts` and `times_s` by class, idle last.
bool is_plausible(std::span<const double> watts, std::span<const double> times_s) {
  double busy_j = 0;
  double busy_s = 0;
  for (std::size_t k = 0; k + 1 < watts.size(); ++k) {
    busy_j += watts[k] * times_s[k];
    busy_s += times_s[k];
  }
  return busy_j >= kLeastBusy * watts.back() * busy_s;
}

// The fit with one unknown per separable group.
class GroupedFit {
 public:
  GroupedFit(const PowerPrior& prior, double pull, const SeparableGroups& groups) : groups_(groups) {
    std::vector<std::size_t> members(groups.groups);
    for (const std::size_t group : groups.group_of) ++members[group];
    // Known groups have a prior, too: otherwise the least identified ones would get 0 or more power than a GPU can use.
    priors_.assign(groups.groups, {prior.busy_w, pull});
    idle_ = groups.group_of.back();
    const double idle_w = members[idle_] == 1 ? prior.idle_w : prior.busy_w;
    for (statistics::Prior& above : priors_) above.value = std::max(prior.busy_w - idle_w, 0.0);
    priors_[idle_].value = idle_w;
    for (const double share : groups.alone) alone_.push_back(share >= kKnownFromData);
  }
  std::vector<double> solve(const statistics::GramSums& grouped) const {
    const std::vector<double> above_w = statistics::nonnegative_least_squares(grouped.above(idle_), priors_).x;
    std::vector<double> all;
    for (const std::size_t group : groups_.group_of) {
      all.push_back(above_w[idle_] + (group == idle_ ? 0 : above_w[group]));
    }
    return all;
  }
  statistics::GramSums grouped(const statistics::GramSums& sums) const {
    return sums.grouped(groups_.group_of, groups_.groups);
  }
  bool is_known_alone(std::size_t column) const { return alone_[column]; }

 private:
  const SeparableGroups& groups_;
  std::size_t idle_ = 0;  // index of the group of idle; other groups are power above idle, which is never negative
  std::vector<statistics::Prior> priors_;
  std::vector<bool> alone_;
};

// Weights of observations with the probing excluded.
std::vector<double> weights_without(std::span<const TimeSpan> probing, const UsefulEvidence& evidence,
                                    std::vector<double> weights, std::int64_t lag_ns) {
  for (std::size_t row = 0; row < weights.size(); ++row) {
    const TimeSpan seen = evidence.span_of(row);
    for (const TimeSpan& span : probing) {
      if (seen.end_ns - lag_ns > span.begin_ns && seen.begin_ns - lag_ns < span.end_ns) weights[row] = 0;
    }
  }
  return weights;
}

// By class: whether it is known without the probing as well.
std::vector<bool> known_without(std::span<const TimeSpan> probing, const UsefulEvidence& evidence,
                                const IntervalObservations& rows, const RobustFit& fit, std::int64_t lag_ns) {
  std::vector<bool> known(rows.columns(), true);
  if (probing.empty()) return known;
  const statistics::GramSums sums = rows.sums(weights_without(probing, evidence, fit.weights, lag_ns));
  const SeparableGroups groups = sure_groups(sums, fit.pull, rows.times_s(), {});
  for (std::size_t k = 0; k < known.size(); ++k) known[k] = groups.alone[k] >= kKnownFromData;
  return known;
}

// How to compute powers from Gram sums of observations, once separability is known.
struct Solution {
  std::function<statistics::GramSums(const statistics::GramSums&)> prepared;
  std::function<std::vector<double>(const statistics::GramSums&)> solve;  // takes prepared sums
  std::function<std::vector<double>(Random&)> moved;  // from all observations, with perturbed priors; or empty
  std::vector<double> spreads;                        // by class: relative model error
  double told = 0;                                    // effective number of unknowns that the data identify
};

Solution by_groups(const GroupedFit& fit, const SeparableGroups& groups) {
  Solution solution{[&fit](const statistics::GramSums& sums) { return fit.grouped(sums); },
                    [&fit](const statistics::GramSums& sums) { return fit.solve(sums); },
                    {},
                    {},
                    0};
  for (const double share : groups.from_data) solution.told += share;
  for (std::size_t k = 0; k < groups.alone.size(); ++k) {
    solution.spreads.push_back(fit.is_known_alone(k) ? kModelSpread : kTimeShareSpread);
  }
  return solution;
}

Solution by_library(const LibraryFit& fit, const statistics::GramSums& sums) {
  Solution solution{[](const statistics::GramSums& some) { return some; },
                    [&fit](const statistics::GramSums& some) { return fit.solve(some); },
                    [&fit, &sums](Random& random) { return fit.draw(sums, random); },
                    std::vector<double>(sums.size(), kModelSpread), 0};
  for (const double share : fit.from_data(sums)) solution.told += share;
  return solution;
}

class Replication {
 public:
  Replication(const IntervalObservations& rows, const RobustFit& robust, const Solution& solution)
      : solution_(solution) {
    const std::size_t count = std::clamp<std::size_t>(rows.size() / kFewestPerBlock, 2, kMostBlocks);
    for (std::size_t i = 0; i < count; ++i) {
      blocks_.push_back(
          solution.prepared(rows.sums(robust.weights, i * rows.size() / count, (i + 1) * rows.size() / count)));
    }
  }

  // `watts`: the fitted powers. `lag_w`: their change per standard deviation of the lag. `sensing`: changes under
  // alternative sensor models. Returns watts by class, then by replicate.
  std::vector<std::vector<double>> draw(const std::vector<double>& watts, const std::vector<double>& lag_w,
                                        const SensorModelChanges& sensing) {
    // A fit follows the noise of the blocks by its degrees of freedom, so errors look smaller than they are.
    const double blocks = static_cast<double>(blocks_.size());
    const double wider = std::sqrt(blocks / std::max(blocks - solution_.told, 1.0));
    std::vector<std::vector<double>> drawn(watts.size(), std::vector<double>(kReplicates));
    for (std::size_t r = 0; r < kReplicates; ++r) {
      statistics::GramSums sums(blocks_.front().size());
      for (const statistics::GramSums& block : blocks_) sums.add(block, random_.exponential());
      const std::vector<double> found = solution_.solve(sums);
      const std::vector<double> moved = solution_.moved ? solution_.moved(random_) : watts;
      const double lag = random_.normal();
      const std::span<const double> sensed_w = sensing.draw(random_);
      for (std::size_t k = 0; k < watts.size(); ++k) {
        const double spread_w = solution_.spreads[k] * watts[k] * random_.normal();
        const double moved_w = moved[k] - watts[k] + (sensed_w.empty() ? 0 : sensed_w[k]);
        drawn[k][r] = std::max(watts[k] + wider * (found[k] - watts[k]) + lag * lag_w[k] + spread_w + moved_w, 0.0);
      }
    }
    return drawn;
  }

 private:
  const Solution& solution_;
  std::vector<statistics::GramSums> blocks_;
  Random random_{kSeed};
};

}  // namespace

std::pair<double, double> central_interval(std::vector<double> values, double share) {
  const double out = (1 - share) / 2 * static_cast<double>(values.size());
  const auto low = std::min(static_cast<std::size_t>(out), values.size() - 1);
  const std::size_t high = values.size() - 1 - low;
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(std::min(low, high));
  const auto last = values.begin() + static_cast<std::ptrdiff_t>(std::max(low, high));
  std::nth_element(values.begin(), last, values.end());
  std::nth_element(values.begin(), first, last);
  return {*first, *last};
}

double PowerFit::watts_at(std::size_t column, double slowdown) const {
  const double full_w = classes[column].watts;
  if (pace <= 0 || slowdown <= 1 || full_w <= idle().watts) return full_w;
  return idle().watts + (full_w - idle().watts) * std::pow(slowdown, -pace);
}

void PowerFit::widen_gains(double spread) {
  const double wider = in_quadrature(gain_spread, spread) / gain_spread;
  for (double& gain : gains) gain = 1 + wider * (gain - 1);
}

PowerFit prior_powers(std::span<const ClassPrior> priors, double gain_spread) {
  PowerFit fit;
  fit.gain_spread = gain_spread;
  Random random(kSeed);
  double mean_w = 0;
  for (std::size_t k = 0; k + 1 < priors.size(); ++k)
    mean_w += priors[k].watts / static_cast<double>(priors.size() - 1);
  for (std::size_t k = 0; k < priors.size(); ++k) {
    const bool is_guess = priors[k].watts <= 0;
    const double watts = is_guess ? kUsualIdle * mean_w : priors[k].watts;
    const double spread = is_guess ? kTimeShareSpread : in_quadrature(priors[k].spread, kModelSpread);
    std::vector<double>& drawn = fit.replicates.emplace_back();
    for (std::size_t r = 0; r < kReplicates; ++r)
      drawn.push_back(std::max(watts * (1 + spread * random.normal()), 0.0));
    const auto [low, high] = central_interval(drawn, 0.9);
    fit.classes.push_back({watts, low, high, 0, false, false, k + 1 < priors.size() && priors[k].known});
  }
  for (std::size_t r = 0; r < kReplicates; ++r) fit.gains.push_back(1 + gain_spread * random.normal());
  fit.groups = priors.size();
  return fit;
}

PowerFit equal_powers(std::size_t classes, double gain_spread) {
  PowerFit fit;
  fit.gain_spread = gain_spread;
  Random random(kSeed);
  for (std::size_t k = 0; k < classes + 1; ++k) {
    std::vector<double>& drawn = fit.replicates.emplace_back();
    for (std::size_t r = 0; r < kReplicates; ++r)
      drawn.push_back(std::max(1 + kTimeShareSpread * random.normal(), 0.0));
    const auto [low, high] = central_interval(drawn, 0.9);
    fit.classes.push_back({1, low, high, 0, false, false});
  }
  for (std::size_t r = 0; r < kReplicates; ++r) fit.gains.push_back(1 + gain_spread * random.normal());
  fit.groups = 1;
  return fit;
}

std::optional<PowerFit> fit_powers(const KernelTimeline& timeline, const PowerEvidence& evidence,
                                   std::span<const ClassPrior> priors) {
  if (timeline.empty()) return std::nullopt;
  const UsefulEvidence useful(timeline, evidence);
  if (useful.rows() < kFewestRows) return std::nullopt;
  FoundSensorModel lag = find_sensor_model(useful, evidence.known);
  if (evidence.held_back) lag.best.pace = find_slowdown_exponent(useful, lag.best);
  const IntervalObservations rows = useful.rows_at(lag.best);
  PowerPrior prior = coarse_prior(rows);
  const bool misled = prior.busy_w < kLeastBusy * prior.idle_w;
  if (misled) prior = fallback_coarse_prior(priors, rows);
  const RobustFit robust = robust_fit(rows, prior, 5);
  const statistics::GramSums sums = rows.sums(robust.weights);
  const std::vector<double> doubts = sensor_model_uncertainty(lag.others, prior.spread_w);
  const SeparableGroups groups = sure_groups(sums, robust.pull, rows.times_s(), doubts);
  const GroupedFit grouped(prior, robust.pull, groups);
  const double repeats = repeats_of(rows, misled ? std::vector<double>(rows.columns()) : groups.alone);
  const LibraryFit library(priors, prior, repeats * robust.pull * prior.spread_w * prior.spread_w);
  const bool has_library = !priors.empty();
  if (misled && !has_library && !tells_any(groups)) return std::nullopt;
  Solution solution = has_library ? by_library(library, sums) : by_groups(grouped, groups);
  const auto solved = [&](const statistics::GramSums& some) { return solution.solve(solution.prepared(some)); };
  const std::vector<double> watts = solved(sums);
  if (misled && !has_library && !is_plausible(watts, rows.times_s())) return std::nullopt;
  // A class at idle power is there because of the constraint; the observations show nothing but that bound.
  for (std::size_t k = 0; k + 1 < watts.size(); ++k) {
    if (watts[k] <= watts.back()) solution.spreads[k] = kTimeShareSpread;
  }
  const auto watts_at = [&](std::int64_t lag_ns) {
    return solved(useful.rows_at({lag_ns, lag.best.memory_ns, lag.best.pace}).sums(robust.weights));
  };
  const std::vector<double> low_w = watts_at(lag.low_ns);
  const std::vector<double> high_w = watts_at(lag.high_ns);
  std::vector<double> lag_w;
  for (std::size_t k = 0; k < watts.size(); ++k) lag_w.push_back((high_w[k] - low_w[k]) / 2 / kNinety);

  PowerFit fit;
  const SensorModelChanges sensing(lag.others, solved);
  fit.replicates = Replication(rows, robust, solution).draw(watts, lag_w, sensing);
  const std::vector<bool> without = known_without(evidence.probing, useful, rows, robust, lag.best.lag_ns);
  const std::vector<bool> believed = has_library ? is_prior_dominated(library, priors, sums) : std::vector<bool>();
  Random random(kSeed + 1);
  fit.gain_spread = evidence.known.gain_spread;
  for (std::size_t r = 0; r < kReplicates; ++r) fit.gains.push_back(1 + fit.gain_spread * random.normal());
  for (std::size_t k = 0; k < watts.size(); ++k) {
    std::vector<double> drawn = fit.replicates[k];
    for (std::size_t r = 0; r < kReplicates; ++r) drawn[r] *= fit.gains[r];
    const auto [low, high] = central_interval(std::move(drawn), 0.9);
    const bool known = grouped.is_known_alone(k) && !(misled && has_library) && !(has_library && believed[k]);
    const bool by_library = has_library && !known && k + 1 < priors.size() && priors[k].known;
    fit.classes.push_back({watts[k], low, high, groups.alone[k], known, known && !without[k], by_library});
  }
  fit.lag_ns = lag.best.lag_ns;
  fit.memory_ns = lag.best.memory_ns;
  fit.pace = lag.best.pace;
  fit.counter_lag_ns = useful.is_gauge() ? evidence.known.counter_lag_ns() : lag.best.lag_ns;
  fit.lag_low_ns = lag.low_ns;
  fit.lag_high_ns = lag.high_ns;
  fit.lag_known = lag.known;
  fit.residual_j = robust.noise;
  fit.rows = rows.size();
  fit.groups = has_library ? sums.size() : groups.groups;
  return fit;
}

}  // namespace joulemap::attribution
