// SPDX-License-Identifier: Apache-2.0
//
// EnergyCurve: the cumulative energy of one channel since its first reading, at any time, from its readings and, if
// available, the power history of its device. Every energy that joulemap shows comes from this class, so the same
// readings give the same joules everywhere. Times are CLOCK_MONOTONIC; one owner, one thread at a time.
//
//      point p0       edge t        point p1
//   -----|--------------|--------------|-----> time        E(t) = E(p0) + share(t) (E(p1) - E(p0))
//
// The share is computed from the energy of the history when the history covers both points, else from time. A point of
// a counter is an update: it happened between the two readings around it, at most one update period before the second.
// For a slow counter with regular updates an UpdateTimeEstimator provides the time. It is most accurate after later
// updates have been seen, so such points stay open for 20 s. Counter and history cover energy up to kUsualCounterLag_ns
// earlier. A point of a gauge or an estimate is a reading. An edge is settled once the point after it is known.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "energy/channel_energy.h"
#include "energy/edge_rules.h"
#include "energy/energy_accumulator.h"
#include "energy/power_profile.h"
#include "energy/read_pauses.h"
#include "energy/update_time_estimator.h"
#include "model/thinning.h"

namespace joulemap {

// The energy at one time and how well it is known.
struct WindowEdgeEnergy {
  std::int64_t time_ns = 0;
  EdgeEnergy cumulative_energy;            // energy since the first reading
  bool is_settled = false;                 // false: extrapolated from the last point
  std::int64_t previous_point_ns = 0;      // time of the preceding point
  bool is_in_first_update_period = false;  // between the first reading of a counter and its first observed update
  double nearest_point_gap_s = 0;          // time without information between the edge and the nearest point
  // At the points before and after the edge: squared integration error of a gauge so far, and time so far whose energy
  // is unknown (EnergyTally::unknown_energy_ns).
  double trapezoid_error_before_j2 = 0;
  double trapezoid_error_after_j2 = 0;
  std::int64_t unknown_energy_before_ns = 0;
  std::int64_t unknown_energy_after_ns = 0;
  double gauge_before_w = 0;  // value of a gauge at these points
  double gauge_after_w = 0;
};

class EnergyCurve {
 public:
  // About 4 s of a counter that updates every millisecond and is read densely; 20 s of one read every 5 ms.
  static constexpr std::size_t kLatestPoints = kUnthinnedValueCount;
  // Nearly two hours of a counter that is read 20 times a second; longer series are thinned.
  static constexpr std::size_t kMaxPoints = std::size_t{1} << 17;

  enum class Retention : std::uint8_t {
    all,     // from the first reading on, in bounded memory: long series are thinned
    latest,  // only the recent past; no allocation after construction
  };
  // `known_refresh_ns`: update period found by an earlier curve of the same channel.
  explicit EnergyCurve(const Channel& channel, Retention retention = Retention::all,
                       std::optional<std::int64_t> known_refresh_ns = {});

  // Readings must come in order of time.
  void observe(const Reading& reading) noexcept;
  void add_power_history(const PowerPoint& point) { power_profile_.add(point); }
  // Passes on the period of another value of the same device (UpdateTimeEstimator::suggest_period).
  void suggest_period(double period_ns, double tolerance_ns) noexcept;
  // Keeps the points around a time that will be queried, even when the curve is thinned.
  void retain_points_around(std::int64_t time_ns) { retained_times_ns_.push_back(time_ns); }

  // None when the retained past does not reach back that far, or there is no good reading yet.
  std::optional<WindowEdgeEnergy> edge_energy_at(std::int64_t time_ns) const;
  // The energy between two times or edges, with the tally of faults since `begin_tally` (the first form: since the first
  // reading). Without energy, `reason` is "no-readings", "frozen", "too-short" (no update yet), or the code of a failed
  // read.
  ChannelEnergy energy_between(std::int64_t begin_ns, std::int64_t end_ns) const;
  ChannelEnergy energy_between(const WindowEdgeEnergy& begin, const WindowEdgeEnergy& end,
                               const EnergyTally& begin_tally) const;

  // Same energy as edge_energy_at, without its error; 0 without readings.
  double joules_at(std::int64_t time_ns) const { return joules_at(time_ns, lag_ns_); }
  // The same for a counter lag of `lag_ns`.
  double joules_at(std::int64_t time_ns, std::int64_t lag_ns) const;
  // The time span from the first to the last point; none without points.
  std::optional<TimeSpan> covered_span() const;
  // Mean power of a span; none when the points cover less than half of it.
  std::optional<double> mean_w(TimeSpan span) const;

  // Number of points after a time, corrected for the lag of the counter. One point settles the energy at that time.
  // Once there are two, the first can no longer be discarded as a torn reading.
  std::size_t count_points_after(std::int64_t time_ns) const {
    return points_.size() - first_point_after(time_ns + lag_ns_);
  }
  // Energy and time of each update that was read, of a slow counter with known update times; otherwise empty.
  std::vector<EnergyPoint> counter_updates() const;

  const Channel& channel() const { return channel_; }
  const EnergyTally& tally() const { return accumulator_.tally(); }
  const UpdateTimeEstimator* clock() const { return update_clock_ ? &*update_clock_ : nullptr; }
  // Update period of the counter: observed, otherwise declared by its sensor.
  std::int64_t refresh_ns() const;
  bool is_refresh_known() const { return update_period_estimate_.is_known(); }

 private:
  struct CurvePoint {
    std::int64_t time_ns = 0;
    double joules = 0;
    std::int64_t time_error_ns = 0;  // maximum distance to the true time
    std::int64_t read_ns = 0;        // start of the first read that showed this value
    double trapezoid_error_j2 = 0;
    std::int64_t unknown_energy_ns = 0;
    std::int64_t last_read_with_value_ns = 0;  // start of the last read that showed this value
    std::int64_t read_error_ns = 0;            // half of the duration of the read; 0 if the clock accounts for it
    double gauge_w = 0;                        // of a gauge: its value

    operator EnergyPoint() const { return {time_ns, joules}; }
  };

  void observe_update(const std::optional<CounterUpdate>& previous, const Reading& reading) noexcept;
  std::int64_t read_error_ns(const Reading& reading) const;
  void add(CurvePoint new_point) noexcept;
  void refine_recent_points(std::int64_t now_ns) noexcept;
  std::int64_t update_time_of_point(std::size_t index) const;
  void set_first_point_time() noexcept;
  // time_ns of the following functions is on the time axis of the points: the time of the edge plus lag_ns_.
  std::size_t first_point_after(std::int64_t time_ns) const;  // index of the first point after it
  double interpolated_energy_j(std::size_t next_point_index, std::int64_t time_ns) const;
  double extrapolated_energy_j(std::int64_t time_ns) const;
  double mean_power_after_point_w(std::size_t point_index) const;  // mean power between the point and the next, in W
  double max_power_around_w(std::size_t next_point_index) const;
  double edge_half_width_j(std::size_t next_point_index, const EnergyPoint& edge) const;
  bool has_stopped_updating(std::int64_t time_ns) const;
  // time_ns of the following functions is the time of the edge, without the lag.
  WindowEdgeEnergy edge_energy_before_first(std::int64_t time_ns) const;
  WindowEdgeEnergy edge_energy_between(std::int64_t time_ns, std::size_t next_point_index) const;
  WindowEdgeEnergy edge_energy_after_last(std::int64_t time_ns) const;
  // What pauses in reading make uncertain, and the squared integration error that a gauge's points have for them.
  struct PauseError {
    double half_width_j = 0;
    double trapezoid_error_j2 = 0;
  };
  PauseError bridge_pauses(const TimeSpan& span, ChannelEnergy& energy) const;

  Channel channel_;
  Retention retention_;
  std::int64_t lag_ns_;
  EnergyAccumulator accumulator_;
  UpdatePeriodEstimate update_period_estimate_;
  std::optional<UpdateTimeEstimator> update_clock_;  // update times of a slow counter
  PowerProfile power_profile_;
  ReadPauses read_pauses_;
  std::vector<CurvePoint> points_;
  std::size_t final_point_count_ = 0;    // number of leading points that are final
  bool starts_at_first_reading_ = true;  // the first point is the first reading
  bool is_first_time_computed_ = false;  // the time of the first point was computed from the first update
  double min_gauge_w_ = 0;               // of a gauge: range of its values
  double max_gauge_w_ = 0;
  std::vector<std::int64_t> retained_times_ns_;
};

}  // namespace joulemap
