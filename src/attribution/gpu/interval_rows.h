// SPDX-License-Identifier: Apache-2.0
//
// IntervalRows: the rows of a power regression at one lag of the counter, with weights that a robust fit may lower. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "attribution/gpu/kernel_timeline.h"
#include "attribution/ledger/time_curve.h"
#include "statistics/nonnegative_least_squares.h"

namespace joulemap::attribution {

// What is believed of all powers beforehand.
struct PowerBelief {
  double busy_w = 0;
  double idle_w = 0;
  double spread_w = 0;
};

// How a sensor sees what a device draws: so late, and, of a gauge, with an exponential memory of this time constant. A
// counter sees everything between its steps. And how much less kernels draw that are slowed down (kernel_pace.h).
struct Sensing {
  std::int64_t lag_ns = 0;
  std::int64_t memory_ns = 0;
  double pace = 0;
};

class IntervalRows {
 public:
  // Of what a gauge showed every `period_s` or so: a row is its power over that time.
  IntervalRows(const KernelTimeline& timeline, std::span<const PowerPoint> shown, const Sensing& sensing,
               double period_s);
  // Between the steps of a counter. `points`: those that are used, all of them.
  IntervalRows(const KernelTimeline& timeline, std::span<const EnergyPoint> points, const Sensing& sensing);

  std::size_t size() const { return joules_.size(); }
  std::size_t columns() const { return busy_.columns; }
  double usual_j() const { return usual_j_; }  // of a row
  std::vector<double> times_s() const;         // of each column, in all rows
  // In units of the usual row's noise scale: long rows may miss by more.
  std::vector<double> residuals(std::span<const double> watts) const;
  statistics::GramSums sums(std::span<const double> weights, std::size_t from, std::size_t to) const;
  statistics::GramSums sums(std::span<const double> weights) const { return sums(weights, 0, size()); }

 private:
  BusyRows busy_;               // divided by the row's scale
  std::vector<double> joules_;  // likewise
  double usual_j_ = 0;
};

// As if idling drew as much.
double mean_power(const IntervalRows& rows);
// Busy or idle, all classes alike: the coarsest fit, and what is believed of the finer one.
PowerBelief coarse_belief(const IntervalRows& rows);

struct RobustFit {
  std::vector<double> watts;
  std::vector<double> weights;  // of rows, 0 .. 1
  double noise = 0;             // of a row, standard deviation
  double pull = 0;              // of beliefs: (noise / spread)^2, odd rows and all
};
// A few rounds of reweighting. All unknowns are pulled to the belief.
RobustFit robust_fit(const IntervalRows& rows, const PowerBelief& belief, int rounds);
std::vector<statistics::Belief> beliefs_for(std::size_t columns, const PowerBelief& belief, double pull);

// Huber's loss: squares near zero, straight lines far out. In units of `noise`.
double huber_cost(std::span<const double> residuals, double noise);

}  // namespace joulemap::attribution
