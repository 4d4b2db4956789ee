// SPDX-License-Identifier: Apache-2.0
//
// The one rule for edges: what a counter that is renewed now and then says about a moment in between, and how well.
// Shared by EnergyWindow (one window, read densely at its edges) and EnergyTimeline (any number of windows). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/channel.h"
#include "model/energy_accumulator.h"

namespace joulemap {

// A counter that has not moved for this long, or this many of its own refreshes, stands still.
inline constexpr double kFrozenAfter_s = 0.25;
inline constexpr double kFrozenAfterRefreshes = 20;
// The end of a live run may fall just after a step: only a tail clearly longer than that is called frozen.
inline constexpr double kFrozenTail_s = 0.5;

// Half widths of the error one edge adds, in steps of the counter. As read, the two edges together are wrong by less
// than one step. Interpolated, power is taken as even between two steps; at worst all its energy lies on one side.
inline constexpr double kEdgeAsRead = 0.71;
inline constexpr double kEdgeInterpolated = 0.5;

// The energy at an edge and the half width (95 %) of its error.
struct EdgeEnergy {
  double joules = 0;
  double half_width_j = 0;
};

// How far `time_ns` lies between the two others: 0 to 1.
double share_of(std::int64_t time_ns, std::int64_t from_ns, std::int64_t to_ns);

// It is a counter whose steps mean something. The value of a gauge or an estimate is that of the moment it was read.
bool has_steps(const Channel& channel);

// Between two steps; `uneven_j` is the energy that may lie anywhere between them.
EdgeEnergy interpolate_edge(std::int64_t time_ns, const EnergyStep& from, const EnergyStep& to, double uneven_j);

// Why a counter without a step tells no energy: "frozen", "too-short", or how it failed.
std::string reason_for_no_step(const EnergyTally& tally, double elapsed_s, double refresh_s);

// What is known of a window besides its energy, as far as it decides the uncertainty.
struct WindowErrors {
  double elapsed_s = 0;
  double missing_s = 0;     // nothing is known about this part of it
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
