// SPDX-License-Identifier: Apache-2.0
#include "predict/model/learned_residual.h"

#include <algorithm>
#include <utility>

namespace joulemap::predict {
namespace {

// A usual random forest: deep trees, each of a sample of the rows, each split of a sample of the columns. 120 trees:
// more change no error by a tenth of a per cent, and a profile stores all of them.
TreeFitOptions make_forest_options(const TreeFitOptions& boosting) {
  TreeFitOptions forest;
  forest.boosting_rounds = 1;
  forest.trees_per_round = 120;
  forest.learning_rate = 1;
  forest.max_depth = 10;
  forest.row_subsample = 0.63;
  forest.column_subsample = 1;
  forest.split_column_subsample = 0.4;
  forest.min_leaf_weight = 2;
  forest.l2_regularization = 0.5;
  forest.monotone_constraints = boosting.monotone_constraints;
  return forest;
}

}  // namespace

std::string_view name_of(Learner learner) { return kLearnerNames[static_cast<std::size_t>(learner)]; }

std::optional<Learner> find_learner(std::string_view name) {
  const auto matching_name = std::ranges::find(kLearnerNames, name);
  if (matching_name == kLearnerNames.end()) return std::nullopt;
  return static_cast<Learner>(matching_name - kLearnerNames.begin());
}

Result<LearnedResidual> fit_learned_residual(Learner learner, const TreeTrainingData& rows,
                                             const TreeFitOptions& tree_options) {
  LearnedResidual residual;
  if (learner == Learner::none) return residual;
  if (learner == Learner::linear) {
    residual.linear = fit_linear_function(rows);
    return residual;
  }
  Result<RegressionTrees> trees =
      fit_trees(rows, learner == Learner::forest ? make_forest_options(tree_options) : tree_options);
  if (!trees) return std::move(trees).error();
  residual.trees = std::move(*trees);
  return residual;
}

}  // namespace joulemap::predict
