// SPDX-License-Identifier: Apache-2.0
//
// LibraryFit: powers of classes of which something is believed beforehand, each with its own value and spread: what the
// kernel library knows of it, or of its kind. What the rows cannot tell stays as believed; what they can tell follows them.
// All believed powers may be off by one common factor, the level: cards, clocks and heat differ. It is found along. Pure.
//
// A draw moves every belief as far as it is not sure and solves again: with rows weighted at random, as the caller does,
// draws are spread as the powers are unsure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "attribution/gpu/interval_rows.h"
#include "statistics/nonnegative_least_squares.h"
#include "statistics/random.h"

namespace joulemap::attribution {

// What is believed of a class before its recording is looked at.
struct ClassPrior {
  double watts = 0;
  double spread = 0;   // relative standard deviation
  bool known = false;  // better than that classes usually differ so much
};

class LibraryFit {
 public:
  // `priors`: by class, and of idling, where it is known. `noise`: variance of a row, in the rows' units.
  LibraryFit(std::span<const ClassPrior> priors, const PowerBelief& belief, double noise);

  // Watts by class; the last is idling.
  std::vector<double> solve(const statistics::GramSums& sums) const;
  std::vector<double> draw(const statistics::GramSums& sums, statistics::Random& random) const;
  // By class, idling last: how much of its difference from what is believed is found in the rows: 0 .. 1.
  std::vector<double> from_data(const statistics::GramSums& sums) const;

 private:
  std::vector<double> solve(const statistics::GramSums& sums, std::span<const double> moved_w) const;
  std::vector<statistics::Belief> differences(std::span<const double> moved_w) const;

  std::vector<double> watts_;  // as believed, with a 0 for idling
  std::vector<double> spread_w_;
  std::vector<double> pulls_;  // of all, idling last
  double idle_w_ = 0;
  double level_pull_;
};

// What a GPU between kernels draws of what it draws at work, where nobody knows.
inline constexpr double kUsualIdle = 0.25;

// Where rows that hardly differ say that idling draws more than working: what the library says of both, or, without one,
// what is usual.
PowerBelief believed_coarsely(std::span<const ClassPrior> priors, const IntervalRows& rows);

// Rows that hardly tell classes apart repeat one another, and so do their errors: held against what a library knows they
// count as so many times fewer. All of them where they tell nothing: then only the level is theirs to say.
// `alone`: by class, how much of it the rows tell (separable_groups.h).
double repeats_of(const IntervalRows& rows, std::span<const double> alone);

// By class, idling last: whether more of it is what the library knew than what the rows say.
std::vector<bool> believed_more(const LibraryFit& library, std::span<const ClassPrior> priors,
                                const statistics::GramSums& sums);

}  // namespace joulemap::attribution
