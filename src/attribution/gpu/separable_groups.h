// SPDX-License-Identifier: Apache-2.0
//
// Groups of regression unknowns that the data can separate. An unknown that depends more on its prior than on data is
// merged with the one whose error is most anti-correlated with its own; the two then share one value. This repeats
// until each group is known or has no such partner. Kernels of a steady loop end as one group: a time-proportional
// split. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "statistics/nonnegative_least_squares.h"

namespace joulemap::attribution {

// An unknown is known if at least this fraction of it comes from the data. With a prior spread of half the mean power,
// the interval of one that just passes is about a third of that power wide to either side.
inline constexpr double kMinIdentifiedFraction = 0.8;

struct SeparableGroups {
  std::vector<std::size_t> group_by_unknown;  // by unknown
  std::size_t group_count = 0;
  std::vector<double> data_fractions;  // by group: 0 prior alone .. 1 data alone
  // By unknown: known fraction of its deviation from the time-weighted mean of all. For idle: of its own power.
  std::vector<double> identified_fractions;
};

// All priors are equal except for their value; `precision` as in statistics::Prior. A group has the same prior
// precision as one unknown. The last unknown is idle: nothing is merged with it where it is known. `times_s`: total
// busy time of each unknown.
SeparableGroups find_separable_groups(const statistics::NormalEquations& sums, double precision,
                                      std::span<const double> times_s);

// The same, with sensor-model uncertainty: `sensor_variance`, by unknown, is the variance that the sensor model leaves
// open, as a fraction of the prior variance. Unknowns that only seemed separable share one value. If no single class
// can be separated from the others, all share one value, except idle if it is known: groups that seem separable are
// then due to chance or to the edges of steps.
SeparableGroups find_groups_with_sensor_uncertainty(const statistics::NormalEquations& sums, double precision,
                                                    std::span<const double> times_s,
                                                    std::span<const double> sensor_variance);

}  // namespace joulemap::attribution
