// SPDX-License-Identifier: Apache-2.0
#include "model/energy_timeline.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/clock.h"

namespace joulemap {
namespace {

// The latest power is the mean over about this long: several steps, so that one odd step does not decide.
constexpr std::int64_t kLatest_ns = 20 * kNanosecondsPerMillisecond;
// Between steps that come quicker than this little energy lies.
constexpr double kSlowRefresh_s = 0.01;
// How well a device keeps the refresh that its sensor declares. One that does not is found out by its slips.
constexpr double kDeclaredPeriod = 0.001;

EnergyTally difference(const EnergyTally& now, const EnergyTally& then) {
  EnergyTally tally = now;
  tally.wraps -= then.wraps;
  tally.resets -= then.resets;
  tally.blind_spots -= then.blind_spots;
  tally.steps -= then.steps;
  tally.good -= then.good;
  tally.gap_ns -= then.gap_ns;
  for (std::size_t code = 0; code < kReadCodes; ++code) tally.failures[code] -= then.failures[code];
  return tally;
}

}  // namespace

EnergyTimeline::EnergyTimeline(const Channel& channel, std::size_t points)
    : channel_(channel), accumulator_(channel), ring_(points) {
  JOULEMAP_CHECK(points >= 2, "a timeline needs two points");
  if (!has_steps(channel) || channel.refresh_s < kSlowRefresh_s) return;
  const double declared_ns = channel.refresh_s * static_cast<double>(kNanosecondsPerSecond);
  clock_.emplace(StepClock::EqualValues::mean_no_step, kNvmlLatch_ns);
  clock_->suggest_period(declared_ns, kDeclaredPeriod * declared_ns);
}

std::int64_t EnergyTimeline::refresh_ns() const {
  if (const auto seen_ns = refresh_.ns()) return *seen_ns;
  return static_cast<std::int64_t>(channel_.refresh_s * static_cast<double>(kNanosecondsPerSecond));
}

void EnergyTimeline::observe(const Reading& reading) noexcept {
  const EnergyTally before = accumulator_.tally();
  const std::optional<EnergyStep> previous = accumulator_.last_step();
  accumulator_.add(reading);
  if (clock_ && reading.code == ReadCode::ok) clock_->observe(reading.before_ns, reading.after_ns, reading.raw);
  const EnergyTally& now = accumulator_.tally();
  if (now.good == before.good) return;
  if (!has_steps(channel_)) {
    add({now.last_ns, now.joules, now.variation_j * now.variation_j, now.gap_ns});
  } else if (now.good == 1) {
    add({now.first_ns - refresh_ns() / 2, 0, 0, 0});
  } else if (now.steps != before.steps) {
    observe_step(previous, reading.before_ns);
  }
}

// The step lies between two readings, and not more than a refresh before the second: else another would have followed it.
void EnergyTimeline::observe_step(const std::optional<EnergyStep>& previous, std::int64_t read_ns) noexcept {
  const EnergyStep& step = *accumulator_.last_step();
  if (previous) refresh_.learn(*previous, step);
  const std::int64_t blur_ns = std::min(step.time_ns - step.not_before_ns, refresh_ns());
  const std::int64_t middle_ns = step.time_ns - blur_ns / 2;
  const std::int64_t time_ns = step_by_clock_ns(step.not_before_ns, read_ns).value_or(middle_ns);
  add({time_ns, step.joules, 0, accumulator_.tally().gap_ns});
}

// The last step that a read saw which began at `read_ns`; the one before, around `not_before_ns`, had not seen it. Nothing
// where that cannot be told.
std::optional<std::int64_t> EnergyTimeline::step_by_clock_ns(std::int64_t not_before_ns, std::int64_t read_ns) const {
  if (!clock_ || !clock_->is_locked()) return std::nullopt;
  const auto period_ns = static_cast<std::int64_t>(clock_->period_ns());
  const std::int64_t blur_ns = clock_->half_width_ns();
  // A read gives the value of its beginning, and its moment is its middle.
  const std::int64_t read_length_ns = period_ns / 10;
  const std::int64_t certain_ns = clock_->last_step_before(read_ns).middle_ns();
  const bool may_be_next = certain_ns + period_ns - blur_ns <= read_ns;
  if (may_be_next) {
    const bool was_seen = not_before_ns > certain_ns + blur_ns + read_length_ns;
    return was_seen ? std::optional(certain_ns + period_ns) : std::nullopt;
  }
  return certain_ns < not_before_ns - read_length_ns ? std::nullopt : std::optional(certain_ns);
}

void EnergyTimeline::add(Point next) noexcept {
  // The total falls only when a reading turns out to have been torn: then the points taken from it never were.
  while (count_ > 0 && point(count_ - 1).joules > next.joules) --count_;
  if (count_ > 0) next.time_ns = std::max(next.time_ns, point(count_ - 1).time_ns + 1);
  ring_[(first_ + count_) % ring_.size()] = next;
  if (count_ < ring_.size()) {
    ++count_;
    return;
  }
  first_ = (first_ + 1) % ring_.size();
  overwritten_ = true;
}

std::size_t EnergyTimeline::first_after(std::int64_t time_ns) const {
  std::size_t low = 0;
  std::size_t high = count_;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (point(middle).time_ns > time_ns) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

std::size_t EnergyTimeline::points_after(std::int64_t time_ns) const { return count_ - first_after(time_ns); }

std::optional<TimelineEdge> EnergyTimeline::edge_at(std::int64_t time_ns) const {
  if (count_ == 0) return std::nullopt;
  const std::size_t after = first_after(time_ns);
  if (after == 0) {
    if (overwritten_) return std::nullopt;
    return edge_before_all(time_ns);
  }
  if (after == count_) return edge_carried_on(time_ns);
  return edge_between(time_ns, point(after - 1), point(after));
}

TimelineEdge EnergyTimeline::edge_before_all(std::int64_t time_ns) const {
  TimelineEdge edge{.time_ns = time_ns, .settled = true, .before_ns = time_ns};
  edge.energy.joules = point(0).joules;
  edge.missing_s = seconds(point(0).time_ns - time_ns);
  return edge;
}

// Read seldom, several steps lie between two points, and the power may have changed anywhere between them; often at the
// edge itself, where the work begins. So all the energy between the points may lie on one side.
TimelineEdge EnergyTimeline::edge_between(std::int64_t time_ns, const Point& from, const Point& to) const {
  const bool is_gauge = channel_.kind == ChannelKind::gauge;
  const double step_j = has_steps(channel_) ? typical_step_j(tally(), refresh_.ns()) : 0;
  const double uneven_j = is_gauge ? 0 : std::max(to.joules - from.joules, step_j);
  return {.time_ns = time_ns,
          .energy = interpolate_edge(time_ns, {from.time_ns, from.time_ns, from.joules},
                                     {to.time_ns, to.time_ns, to.joules}, uneven_j),
          .settled = true,
          .before_ns = from.time_ns,
          .variation_before_j2 = from.variation_j2,
          .variation_after_j2 = to.variation_j2,
          .gap_before_ns = from.gap_ns,
          .gap_after_ns = to.gap_ns};
}

std::int64_t EnergyTimeline::stands_still_after_ns() const {
  const double refreshes_s = kFrozenAfterRefreshes * seconds(refresh_ns());
  return static_cast<std::int64_t>(std::max(kFrozenTail_s, refreshes_s) * static_cast<double>(kNanosecondsPerSecond));
}

TimelineEdge EnergyTimeline::edge_carried_on(std::int64_t time_ns) const {
  const Point& last = point(count_ - 1);
  TimelineEdge edge{.time_ns = time_ns,
                    .energy = {last.joules, 0},
                    .before_ns = last.time_ns,
                    .variation_before_j2 = last.variation_j2,
                    .variation_after_j2 = last.variation_j2,
                    .gap_before_ns = last.gap_ns,
                    .gap_after_ns = tally().gap_ns};
  const double unseen_s = seconds(time_ns - last.time_ns);
  if (tally().last_code != ReadCode::ok || time_ns - last.time_ns > stands_still_after_ns()) {
    edge.missing_s = unseen_s;
    return edge;
  }
  const double carried_j = latest_power_w() * unseen_s;
  edge.energy.joules += carried_j;
  edge.energy.half_width_j = carried_j + kEdgeAsRead * typical_step_j(tally(), refresh_.ns());
  return edge;
}

double EnergyTimeline::latest_power_w() const {
  if (count_ < 2) return 0;
  const Point& last = point(count_ - 1);
  std::size_t index = count_ - 2;
  while (index > 0 && last.time_ns - point(index).time_ns < kLatest_ns) --index;
  const double elapsed_s = std::max(seconds(last.time_ns - point(index).time_ns), 1e-9);
  return (last.joules - point(index).joules) / elapsed_s;
}

namespace {

// No point after the beginning has come: nothing was seen of this window.
std::string reason_for_nothing(const EnergyTimeline& timeline, const TimelineEdge& end) {
  const EnergyTally& tally = timeline.tally();
  const double still_s = seconds(std::max(tally.last_ns, end.time_ns) - end.before_ns);
  const std::string reason = reason_for_no_step(tally, still_s, seconds(timeline.refresh_ns()));
  return reason == "too-short" ? "no-step" : reason;
}

}  // namespace

ChannelEnergy energy_between(const EnergyTimeline& timeline, const TimelineEdge& begin, const TimelineEdge& end,
                             const EnergyTally& at_begin) {
  const Channel& channel = timeline.channel();
  ChannelEnergy energy{
      .channel = channel, .refresh_s = seconds(timeline.refresh_ns()), .tally = difference(timeline.tally(), at_begin)};
  const bool failed = timeline.tally().last_code != ReadCode::ok;
  if (!begin.settled && (has_steps(channel) || failed || timeline.tally().good < 2)) {
    energy.reason = reason_for_nothing(timeline, end);
    return energy;
  }
  const double elapsed_s = seconds(end.time_ns - begin.time_ns);
  const double gap_s = seconds(end.gap_after_ns - begin.gap_before_ns);
  energy.missing_s = std::min(begin.missing_s + end.missing_s + gap_s, elapsed_s);
  energy.frozen_s = has_steps(channel) && !failed ? std::min(end.missing_s, elapsed_s) : 0;
  energy.joules = std::max(end.energy.joules - begin.energy.joules, 0.0);
  energy.tally.variation_j = std::sqrt(std::max(end.variation_after_j2 - begin.variation_before_j2, 0.0));
  energy.uncertainty_j = window_uncertainty_j(channel, *energy.joules,
                                              {.elapsed_s = elapsed_s,
                                               .missing_s = energy.missing_s,
                                               .variation_j = energy.tally.variation_j,
                                               .begin_edge_j = begin.energy.half_width_j,
                                               .end_edge_j = end.energy.half_width_j});
  return energy;
}

}  // namespace joulemap
