// SPDX-License-Identifier: Apache-2.0
//
// Rules for window edges: the energy of a periodically updated counter at a time between updates, and its error. Every
// constant of EnergyCurve that describes a sensor is defined here, once. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "energy/energy_accumulator.h"
#include "model/channel.h"
#include "model/time_points.h"

namespace joulemap {

// A counter that has had no update for this time, and for this many of its update periods, counts as frozen.
inline constexpr double kFrozenAfter_s = 0.25;
inline constexpr double kFrozenAfterUpdatePeriods = 20;
// Minimum time, in s, between the last update and the last reading after which the end of a window counts as frozen.
inline constexpr double kMinFrozenTail_s = 0.5;

// Half width of the error of one edge, in counter increments. Without interpolation, both edges together are wrong by
// less than one increment.
inline constexpr double kEdgeErrorInIncrements = 0.71;

// A counter with a longer update period is slow: its updates are regular, and their times matter
// (energy/update_time_estimator.h). The period that the sensor declares applies until the updates show a different one.
inline constexpr double kMinSlowUpdatePeriod_s = 0.01;
// Relative accuracy of an update period that a sensor declares. If the device has another period, updates slip.
inline constexpr double kDeclaredPeriodTolerance = 0.001;

// An update of the H200 counter covers energy up to 6 to 10 ms earlier (docs/reference/evidence.md). Its power history
// has the same delay: 4 ms plus a time constant of 13 ms, minus half of the 20 ms that a value covers. Other GPUs are
// assumed to behave the same.
inline constexpr std::int64_t kUsualCounterLag_ns = 10'000'000;
// Sampling period of the power history: the time of a power change is known to this accuracy.
inline constexpr double kPowerHistoryPeriod_s = 0.02;
// Relative error of the power history, which depends on the power. Up to this fraction of the energy next to an edge
// may belong to the other side.
inline constexpr double kPowerHistoryRelativeError = 0.05;

// Upper bound of the power in an unobserved interval, as a multiple of the power next to it.
inline constexpr double kMaxUnobservedPowerRatio = 2;

// An estimate follows from CPU time, which the kernel counts in ticks of Channel::refresh_s for each CPU: it is wrong by up
// to one tick at each edge. Power of busy CPUs above idle, as a multiple of Channel::uncertainty_w (power_model.h).
inline constexpr double kEstimateBusyPowerRatio = 4;
// A shorter window, in ticks, has an estimate of little use.
inline constexpr double kMinEstimateTicks = 5;

// The energy at an edge and the half width (95 %) of its error.
struct EdgeEnergy {
  double joules = 0;
  double half_width_j = 0;
};

// Position of `time_ns` between the two other times: 0 to 1. Returns 1 if the span is empty.
double fraction_of_span(std::int64_t time_ns, std::int64_t from_ns, std::int64_t to_ns);

// Whether the channel is a measured counter, whose value dates from its last update. The value of a gauge or an
// estimate dates from the read.
bool has_counter_updates(const Channel& channel);

// Whether the channel is a measured counter whose updates are so far apart that their times matter.
bool is_slowly_updating_counter(const Channel& channel);

// Maximum error of `edge.joules`, in J, when the power between the points `previous_point` and `next_point` stays
// between 0 and `max_power_w`.
double max_edge_error_j(const EnergyPoint& previous_point, const EnergyPoint& next_point, const EnergyPoint& edge,
                        double max_power_w);

// Why a counter without an update for `elapsed_s` yields no energy: the code of a failed last read, otherwise
// "no-readings", "frozen" or "too-short".
std::string reason_for_no_update(const EnergyTally& tally, double elapsed_s, double refresh_s);

// Error terms of a window that determine its uncertainty.
struct WindowErrors {
  double elapsed_s = 0;
  double missing_s = 0;                   // part of the window about which nothing is known
  double bridged_pause_half_width_j = 0;  // half width of the energy of bridged pauses
  double trapezoid_error_j = 0;           // integration error of a gauge, without bridged pauses
  double gauge_change_w = 0;              // change of a gauge from the begin to the end
  double max_gauge_w = 0;                 // its highest value
  double begin_edge_half_width_j = 0;     // half widths at the edges
  double end_edge_half_width_j = 0;
};

// Half width, in J, of the 95 % interval of a window's energy `joules`.
double window_uncertainty_j(const Channel& channel, double joules, const WindowErrors& errors);

// Update period of a counter: the mean of the intervals between updates whose times are known well. Intervals that skip
// an update are excluded.
class UpdatePeriodEstimate {
 public:
  UpdatePeriodEstimate() = default;
  explicit UpdatePeriodEstimate(std::optional<std::int64_t> known_period_ns)
      : interval_sum_ns_(known_period_ns.value_or(0)), interval_count_(known_period_ns ? 1 : 0) {}

  void add_interval(const CounterUpdate& previous, const CounterUpdate& step) noexcept;
  bool is_known() const { return interval_count_ > 0; }
  std::optional<std::int64_t> period_ns() const;

 private:
  std::int64_t interval_sum_ns_ = 0;
  std::int64_t interval_count_ = 0;
};

// Energy of one counter update: the mean energy per observed change or, if the update period is known, mean power times
// that period, whichever is smaller (a change may cover several updates). 0 without updates.
double typical_update_energy_j(const EnergyTally& tally, std::optional<std::int64_t> refresh_ns);

}  // namespace joulemap
