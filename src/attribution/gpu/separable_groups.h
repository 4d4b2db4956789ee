// SPDX-License-Identifier: Apache-2.0
//
// Which unknowns of a regression the data can tell apart. One that is told by belief more than by data is put together with
// the one it is most confused with; the two then share one value, as their times share it. So on, until each group is
// known or confused with nobody. A steady loop ends as one group: plain shares of time. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "statistics/nonnegative_least_squares.h"

namespace joulemap::attribution {

// An unknown is known if so much of it comes from the data. With beliefs as wide as half of the mean power, the
// interval around one that just passes is about a third of that power wide to either side.
inline constexpr double kKnownFromData = 0.8;

struct SeparableGroups {
  std::vector<std::size_t> group_of;  // by unknown
  std::size_t groups = 0;
  std::vector<double> from_data;  // by group: 0 belief alone .. 1 data alone
  // By unknown: how much of its difference from the mean of all, weighted by time, is known. That of idling: of itself.
  std::vector<double> alone;
};

// A belief is the same for all but its value; `pull` as in statistics::Belief. A group is believed in as firmly as one. The
// last unknown is idling: nobody joins it where it is known.
// `times_s`: how long each was busy in all.
SeparableGroups separable_groups(const statistics::GramSums& sums, double pull, std::span<const double> times_s);

// The same, once more is known: `doubts`, by unknown, say how much of what was believed of it is left open by what the
// sensor may be, as a share of the belief's variance. Those that only seemed to be told apart share one value. And where not
// one class can be told from the others all do, apart from idling if that is known: a group of them that could be is chance
// or the edge of a step.
SeparableGroups sure_groups(const statistics::GramSums& sums, double pull, std::span<const double> times_s,
                            std::span<const double> doubts);

}  // namespace joulemap::attribution
