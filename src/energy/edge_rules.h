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

// A counter without an update for this time, or for this many of its update periods, is frozen.
inline constexpr double kFrozenAfter_s = 0.25;
inline constexpr double kFrozenAfterUpdatePeriods = 20;
// A live run may end just after an update: only a clearly longer tail counts as frozen.
inline constexpr double kFrozenTail_s = 0.5;

// Half width of the error of one edge, in counter increments. Without interpolation, both edges together are wrong by
// less than one increment.
inline constexpr double kUninterpolatedEdgeError = 0.71;

// A counter with a longer update period is slow: its updates are regular, and their times matter
// (energy/counter_clock.h). The period that the sensor declares applies until the updates show a different one.
inline constexpr double kSlowRefresh_s = 0.01;
// Relative accuracy of a declared update period. Slips reveal a device that does not keep it.
inline constexpr double kDeclaredPeriodTolerance = 0.001;

// An update of the H200 counter covers energy up to 6 to 10 ms earlier (docs/validation-h200.md). Its power history has
// the same delay: 4 ms plus a time constant of 13 ms, minus half of the 20 ms that a value covers. Other GPUs are
// assumed to behave the same.
inline constexpr std::int64_t kUsualCounterLag_ns = 10'000'000;
// Sampling period of the power history: the time of a power change is known to this accuracy.
inline constexpr double kHistoryPeriod_s = 0.02;
// Relative error of the power history, which depends on the power: up to this fraction of the energy that it
// distributes may belong to the other side of an edge.
inline constexpr double kPowerHistoryError = 0.05;

// Upper bound of the power in an unobserved interval, as a multiple of the power next to it.
inline constexpr double kMaxUnobservedPowerRatio = 2;

// The energy at an edge and the half width (95 %) of its error.
struct EdgeEnergy {
  double joules = 0;
  double half_width_j = 0;
};

// Position of `time_ns` between the two other times: 0 to 1.
double fraction_of_span(std::int64_t time_ns, std::int64_t from_ns, std::int64_t to_ns);

// Whether it is a counter with meaningful updates. A gauge or an estimate has the value of the moment it was read.
bool has_counter_updates(const Channel& channel);

// Whether it is a measured counter whose updates are so far apart that their times matter.
bool is_slow_counter(const Channel& channel);

// Maximum error of `edge.joules` when the power between the two points stays between 0 and `most_w`.
double unobserved_half_width_j(const EnergyPoint& from, const EnergyPoint& to, const EnergyPoint& edge, double most_w);

// Why a counter without an update yields no energy: "frozen", "too-short", or its failure.
std::string reason_for_no_update(const EnergyTally& tally, double elapsed_s, double refresh_s);

// Error terms of a window that determine its uncertainty.
struct WindowErrors {
  double elapsed_s = 0;
  double missing_s = 0;          // part of the window about which nothing is known
  double bridged_j = 0;          // half width of the energy of bridged pauses
  double trapezoid_error_j = 0;  // of a gauge
  double begin_edge_j = 0;       // half widths at the edges
  double end_edge_j = 0;
};

// Half width at 95 %.
double window_uncertainty_j(const Channel& channel, double joules, const WindowErrors& errors);

// Update period of a counter: the mean of the intervals between updates whose times are known well. Intervals that skip
// an update are excluded.
class UpdatePeriodEstimate {
 public:
  UpdatePeriodEstimate() = default;
  explicit UpdatePeriodEstimate(std::optional<std::int64_t> known_ns)
      : sum_ns_(known_ns.value_or(0)), count_(known_ns ? 1 : 0) {}

  void add_interval(const CounterUpdate& previous, const CounterUpdate& step) noexcept;
  bool is_known() const { return count_ > 0; }
  std::optional<std::int64_t> period_ns() const;

 private:
  std::int64_t sum_ns_ = 0;
  std::int64_t count_ = 0;
};

// Energy of one counter increment: observed mean power times the update period when that is known, else the mean energy
// of one change.
double typical_update_j(const EnergyTally& tally, std::optional<std::int64_t> refresh_ns);

}  // namespace joulemap
