// SPDX-License-Identifier: Apache-2.0
//
// EnergyTimeline: the recent past of one channel, from which the energy at any moment can be told. Any number of windows,
// nested or overlapping, are measured from one stream of readings: each asks for its two edges. One owner, one thread at
// a time; bounded memory, no allocation after construction. Times are CLOCK_MONOTONIC.
//
//      point p0       edge t        point p1
//   -----|--------------|--------------|-----> time        E(t) = E(p0) + (t - p0) / (p1 - p0) (E(p1) - E(p0))
//
// A point of a counter is a step: it happened between the two readings around it, at most one refresh before the second. Of
// a slow counter that steps regularly a StepClock says when, so that it does not matter at which moments it is read.
// A point of a gauge or an estimate is a reading. An edge is settled once the point after it has come; then it can be kept
// in place of the past, so a window of hours costs no more than one of a millisecond.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/channel_energy.h"
#include "model/edge_rules.h"
#include "model/energy_accumulator.h"
#include "model/step_clock.h"

namespace joulemap {

// What a timeline says about a moment.
struct TimelineEdge {
  std::int64_t time_ns = 0;
  EdgeEnergy energy;           // since the first reading
  bool settled = false;        // else it was carried on from the last point, at the latest power
  std::int64_t before_ns = 0;  // the point before
  double missing_s = 0;        // between the edge and the nearest point, where nothing can be said about that time
  // Up to the points around: what gauges may have missed (squared), and the time that resets have cost.
  double variation_before_j2 = 0;
  double variation_after_j2 = 0;
  std::int64_t gap_before_ns = 0;
  std::int64_t gap_after_ns = 0;
};

class EnergyTimeline {
 public:
  // About four seconds of a counter that is renewed every millisecond and read densely; 20 s of one read every 5 ms.
  static constexpr std::size_t kPoints = 4096;

  explicit EnergyTimeline(const Channel& channel, std::size_t points = kPoints);

  // In order of time.
  void observe(const Reading& reading) noexcept;

  // Nothing where the past does not reach back so far, or no reading was good yet.
  std::optional<TimelineEdge> edge_at(std::int64_t time_ns) const;
  // Points seen after a moment. With one it is settled; with two the one could not be taken back as torn any more.
  std::size_t points_after(std::int64_t time_ns) const;

  const Channel& channel() const { return channel_; }
  const EnergyTally& tally() const { return accumulator_.tally(); }
  // How often the counter is renewed: as seen, else as the hardware is said to do.
  std::int64_t refresh_ns() const;
  bool refresh_was_seen() const { return refresh_.is_known(); }

 private:
  struct Point {
    std::int64_t time_ns = 0;
    double joules = 0;
    double variation_j2 = 0;
    std::int64_t gap_ns = 0;
  };

  void observe_step(const std::optional<EnergyStep>& previous, std::int64_t read_ns) noexcept;
  std::optional<std::int64_t> step_by_clock_ns(std::int64_t not_before_ns, std::int64_t read_ns) const;
  void add(Point point) noexcept;
  const Point& point(std::size_t index) const { return ring_[(first_ + index) % ring_.size()]; }
  std::size_t first_after(std::int64_t time_ns) const;  // index of the first point after it, or count_
  TimelineEdge edge_before_all(std::int64_t time_ns) const;
  TimelineEdge edge_between(std::int64_t time_ns, const Point& from, const Point& to) const;
  TimelineEdge edge_carried_on(std::int64_t time_ns) const;
  double latest_power_w() const;
  std::int64_t stands_still_after_ns() const;

  Channel channel_;
  EnergyAccumulator accumulator_;
  RefreshEstimate refresh_;
  std::optional<StepClock> clock_;  // of a slow counter
  std::vector<Point> ring_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  bool overwritten_ = false;  // the past is longer than what is kept
};

// The energy between two edges of a timeline. `at_begin` is its tally when the window began, so that the window's own
// faults are told. Without energy the reason is "frozen", "no-step" (the next step has not come yet), or how it failed.
ChannelEnergy energy_between(const EnergyTimeline& timeline, const TimelineEdge& begin, const TimelineEdge& end,
                             const EnergyTally& at_begin);

}  // namespace joulemap
