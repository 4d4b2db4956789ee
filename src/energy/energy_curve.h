// SPDX-License-Identifier: Apache-2.0
//
// EnergyCurve: the energy of one channel since its first reading, at any moment, from its readings and, where its device
// keeps one, from the history of its power. Summaries, windows, reports, steps and pages all ask this class, so that the
// same readings give the same joules everywhere. Times are CLOCK_MONOTONIC; one owner, one thread at a time.
//
//      point p0       edge t        point p1
//   -----|--------------|--------------|-----> time        E(t) = E(p0) + share(t) (E(p1) - E(p0))
//
// The share is that of the history's energy where the history covers both points, else that of the time. A point of a
// counter is an update: it happened between the two readings around it, at most one refresh before the second. Of a slow
// counter that updates regularly a StepClock gives the moment, best when it has seen what came before and after: such points
// stay open for 20 s. What it and the history show was used until kUsualCounterLag_ns before. A point of a gauge or an
// estimate is a reading. An edge is settled once the point after it has come.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "energy/channel_energy.h"
#include "energy/edge_rules.h"
#include "energy/energy_accumulator.h"
#include "energy/power_shape.h"
#include "energy/read_pauses.h"
#include "energy/step_clock.h"
#include "model/thinning.h"

namespace joulemap {

// What a curve shows about a moment.
struct CurveEdge {
  std::int64_t time_ns = 0;
  EdgeEnergy energy;           // since the first reading
  bool settled = false;        // else it was extrapolated from the last point
  std::int64_t before_ns = 0;  // the point before
  bool in_first_step = false;  // between the first reading of a counter and its first update
  double missing_s = 0;        // between the edge and the nearest point, where nothing is known about that time
  // Up to the points around: what gauges may have missed (squared), and the time that resets have cost.
  double variation_before_j2 = 0;
  double variation_after_j2 = 0;
  std::int64_t gap_before_ns = 0;
  std::int64_t gap_after_ns = 0;
};

class EnergyCurve {
 public:
  // About four seconds of a counter that updates every millisecond and is read densely; 20 s of one read every 5 ms.
  static constexpr std::size_t kLatestPoints = kLatestKept;
  // Nearly two hours of a counter that is read 20 times a second; a longer series keeps fewer points.
  static constexpr std::size_t kMostPoints = std::size_t{1} << 17;

  enum class Keep : std::uint8_t {
    all,     // from the first reading on, in bounded memory: a long past keeps fewer points
    latest,  // the recent past only; nothing is allocated after construction
  };
  // `known_refresh_ns`: what an earlier curve of the same channel has found out.
  explicit EnergyCurve(const Channel& channel, Keep keep = Keep::all,
                       std::optional<std::int64_t> known_refresh_ns = {});

  // In order of time.
  void observe(const Reading& reading) noexcept;
  void observe_history(const PowerPoint& point) { shape_.add(point); }
  // The period of another value of the same device (StepClock::suggest_period).
  void suggest_period(double period_ns, double tolerance_ns) noexcept;
  // This moment will be asked about: the points around it stay, however long the curve becomes.
  void keep_around(std::int64_t time_ns) { kept_ns_.push_back(time_ns); }

  // Nothing where the past does not reach back so far, or no reading was good yet.
  std::optional<CurveEdge> edge_at(std::int64_t time_ns) const;
  // The energy between two moments, faults of the whole time since `at_begin` included. Without energy the reason is
  // "frozen", "too-short" (no update has come yet), or how it failed.
  ChannelEnergy energy_between(std::int64_t begin_ns, std::int64_t end_ns) const;
  ChannelEnergy energy_between(const CurveEdge& begin, const CurveEdge& end, const EnergyTally& at_begin) const;

  // The same energy as edge_at, without its error; 0 where nothing was read.
  double joules_at(std::int64_t time_ns) const { return joules_at(time_ns, lag_ns_); }
  // The same, were the counter late by `lag_ns`.
  double joules_at(std::int64_t time_ns, std::int64_t lag_ns) const;
  // The time that the points cover.
  std::optional<TimeSpan> covered() const;
  // The mean power of a span; nothing where the points cover less than half of it.
  std::optional<double> mean_w(TimeSpan span) const;

  // Points seen after a moment. With one it is settled; with two the one cannot be taken back as torn any more.
  std::size_t points_after(std::int64_t time_ns) const { return points_.size() - first_after(time_ns + lag_ns_); }
  // Where the updates of a slow counter are known: what it showed at those that were read, when it showed it.
  std::vector<EnergyPoint> updates() const;

  const Channel& channel() const { return channel_; }
  const EnergyTally& tally() const { return accumulator_.tally(); }
  const StepClock* clock() const { return clock_ ? &*clock_ : nullptr; }
  // How often the counter updates: as seen, else as its sensor declares.
  std::int64_t refresh_ns() const;
  bool refresh_is_known() const { return refresh_.is_known(); }

 private:
  struct Point {
    std::int64_t time_ns = 0;
    double joules = 0;
    std::int64_t blur_ns = 0;  // how far the true moment may lie from it
    std::int64_t read_ns = 0;  // when the read began that first showed it,
    double variation_j2 = 0;
    std::int64_t gap_ns = 0;
    std::int64_t same_ns = 0;  // and the last that still did

    operator EnergyPoint() const { return {time_ns, joules}; }
  };

  void observe_step(const std::optional<EnergyStep>& previous, std::int64_t read_ns) noexcept;
  void add(Point point) noexcept;
  void place_open_points(std::int64_t now_ns) noexcept;
  std::int64_t update_shown_by(std::size_t index) const;
  void place_first_point() noexcept;
  // Times of these are those of points: when a counter shows it.
  std::size_t first_after(std::int64_t time_ns) const;  // index of the first point after it
  double energy_between_points(std::size_t after, std::int64_t time_ns) const;
  double energy_after_last(std::int64_t time_ns) const;
  double power_between(std::size_t from) const;  // the point and the next
  double most_power_around(std::size_t after) const;
  double half_width_between(std::size_t after, const EnergyPoint& edge) const;
  bool stands_still(std::int64_t time_ns) const;
  // And of these those of the edge.
  CurveEdge edge_before_first(std::int64_t time_ns) const;
  CurveEdge edge_between(std::int64_t time_ns, std::size_t after) const;
  CurveEdge edge_after_last(std::int64_t time_ns) const;
  void bridge_pauses(const TimeSpan& span, ChannelEnergy& energy, double& half_width_j) const;

  Channel channel_;
  Keep keep_;
  std::int64_t lag_ns_;
  EnergyAccumulator accumulator_;
  RefreshEstimate refresh_;
  std::optional<StepClock> clock_;  // of a slow counter
  PowerShape shape_;
  ReadPauses pauses_;
  std::vector<Point> points_;
  std::size_t placed_ = 0;     // so many points stay where they are
  bool has_first_ = true;      // the first point is that of the first reading
  bool first_placed_ = false;  // by the first update
  double least_w_ = 0;         // of a gauge: the range of what it showed
  double most_w_ = 0;
  std::vector<std::int64_t> kept_ns_;
};

}  // namespace joulemap
