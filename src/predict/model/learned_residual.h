// SPDX-License-Identifier: Apache-2.0
//
// LearnedResidual: the part of an operation's time or power that neither physics nor similar operations explain, as a
// function of the operation's features. Three learners can fit it. Values; predict() is pure.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "predict/model/linear_function.h"
#include "predict/model/regression_trees.h"

namespace joulemap::predict {

enum class Learner {
  boosting,  // gradient-boosted trees
  forest,    // random forest
  linear,    // ridge regression
  none,      // no learned residual: physics and similar operations alone
};
inline constexpr std::array<std::string_view, 4> kLearnerNames = {"boosting", "forest", "linear", "none"};
std::string_view name_of(Learner learner);
std::optional<Learner> find_learner(std::string_view name);

// The learner that fitted it sets either part; the other one, or both, are 0.
struct LearnedResidual {
  RegressionTrees trees;
  LinearFunction linear;

  double predict(std::span<const float> features) const { return trees.predict(features) + linear.predict(features); }
};

// `tree_options`: of boosting; a forest takes only its constraints.
Result<LearnedResidual> fit_learned_residual(Learner learner, const TreeTrainingData& rows,
                                             const TreeFitOptions& tree_options);

}  // namespace joulemap::predict
