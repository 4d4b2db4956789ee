// SPDX-License-Identifier: Apache-2.0
//
// The rules for edges: what a counter that updates now and then shows about a moment in between, and how well. Every
// constant of EnergyCurve that describes a sensor is here, once. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "energy/energy_accumulator.h"
#include "model/channel.h"
#include "model/time_points.h"

namespace joulemap {

// A counter that has not moved for this long, or this many of its own refreshes, stands still.
inline constexpr double kFrozenAfter_s = 0.25;
inline constexpr double kFrozenAfterRefreshes = 20;
// The end of a live run may fall just after a step: only a tail clearly longer than that is called frozen.
inline constexpr double kFrozenTail_s = 0.5;

// Half width of the error one edge adds, in steps of the counter. As read, the two edges together are wrong by less
// than one step.
inline constexpr double kEdgeAsRead = 0.71;

// A counter with a longer refresh is slow: its updates are regular, and their moments matter (energy/step_clock.h). What its
// sensor declares is taken until its updates show otherwise.
inline constexpr double kSlowRefresh_s = 0.01;
// How well a device keeps the refresh that its sensor declares. One that does not is found out by its slips.
inline constexpr double kDeclaredPeriod = 0.001;

// An H200 shows at an update of its counter the energy until 6 to 10 ms before (docs/validation-h200.md), and the history
// of its power is as late: 4 ms and a time constant of 13 ms, less half of the 20 ms that a value holds for. Other GPUs are
// taken to do the same.
inline constexpr std::int64_t kUsualCounterLag_ns = 10'000'000;
// The history of a power is sampled this often, so that the moment of a change is known that well.
inline constexpr double kHistoryPeriod_s = 0.02;
// The history reads too high at one power and too low at another: so much of what it distributes may lie on the other side.
inline constexpr double kShapeError = 0.05;

// Power that was not seen: at most this many times that of the time next to it.
inline constexpr double kMostOfUnseen = 2;

// The energy at an edge and the half width (95 %) of its error.
struct EdgeEnergy {
  double joules = 0;
  double half_width_j = 0;
};

// How far `time_ns` lies between the two others: 0 to 1.
double share_of(std::int64_t time_ns, std::int64_t from_ns, std::int64_t to_ns);

// It is a counter whose steps mean something. The value of a gauge or an estimate is that of the moment it was read.
bool has_steps(const Channel& channel);

// A measured counter whose updates are so far apart that their moments matter.
bool is_slow_counter(const Channel& channel);

// How far the energy at a moment between two points can lie from `joules` while the power stays between 0 and `most_w`.
double unseen_half_width_j(const EnergyPoint& from, const EnergyPoint& to, const EnergyPoint& edge, double most_w);

// Why a counter without a step tells no energy: "frozen", "too-short", or how it failed.
std::string reason_for_no_step(const EnergyTally& tally, double elapsed_s, double refresh_s);

// What is known of a window besides its energy, as far as it decides the uncertainty.
struct WindowErrors {
  double elapsed_s = 0;
  double missing_s = 0;     // nothing is known about this part of it
  double bridged_j = 0;     // half width of the energy of pauses that were bridged
  double variation_j = 0;   // of a gauge
  double begin_edge_j = 0;  // half widths of the edges
  double end_edge_j = 0;
};

// Half width at 95 %.
double window_uncertainty_j(const Channel& channel, double joules, const WindowErrors& errors);

// How often a counter is renewed: the mean of the intervals between steps whose moments are known well; those that
// skipped a step are left out.
class RefreshEstimate {
 public:
  RefreshEstimate() = default;
  explicit RefreshEstimate(std::optional<std::int64_t> known_ns)
      : sum_ns_(known_ns.value_or(0)), count_(known_ns ? 1 : 0) {}

  void learn(const EnergyStep& previous, const EnergyStep& step) noexcept;
  bool is_known() const { return count_ > 0; }
  std::optional<std::int64_t> ns() const;

 private:
  std::int64_t sum_ns_ = 0;
  std::int64_t count_ = 0;
};

// Energy of one step: where the refresh is known, the mean power of all that was seen times the refresh; else what
// one change brought on average.
double typical_step_j(const EnergyTally& tally, std::optional<std::int64_t> refresh_ns);

}  // namespace joulemap
