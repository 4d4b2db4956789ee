// SPDX-License-Identifier: Apache-2.0
//
// RegressionTrees: a sum of regression trees. XGBoost fits them; this class evaluates them, because a profile stores
// trees as plain numbers, and a prediction should not load a library of five megabytes. Values; predict() is pure and
// safe from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace joulemap::predict {

struct TreeNode {
  std::int32_t feature = -1;  // -1 for a leaf
  float value = 0;            // threshold: the left child if the feature is below it; for a leaf the value that it adds
  std::int32_t left = 0;      // indices into RegressionTrees::nodes
  std::int32_t right = 0;
};

struct RegressionTrees {
  std::vector<TreeNode> nodes;
  std::vector<std::int32_t> roots;

  double predict(std::span<const float> features) const;
};

struct TreeTrainingData {
  std::size_t columns = 0;
  std::vector<float> features;  // row-major
  std::vector<float> targets;
  std::vector<float> weights;

  std::size_t size() const { return targets.size(); }
  void add(std::span<const float> row, double target, double weight);
};

struct TreeFitOptions {
  int boosting_rounds = 165;
  int trees_per_round = 1;  // their mean is added; a random forest is one round of many trees
  int max_depth = 7;
  double learning_rate = 0.11;
  double row_subsample = 0.8;
  double column_subsample = 0.6;          // of each tree
  double split_column_subsample = 1;      // of each split, of the columns of the tree
  double min_leaf_weight = 2;             // least total weight of the rows in a leaf
  double l2_regularization = 2;           // L2 regularization of leaf values
  std::vector<int> monotone_constraints;  // by column: +1 the result may only rise, -1 only fall; empty: no limits
};

// Loads libxgboost.so.0 at run time; if it is missing, the Error contains what to install. Uses one thread: a second
// one that waits for a busy core makes the fit several times slower. The same rows give the same trees.
Result<RegressionTrees> fit_trees(const TreeTrainingData& rows, const TreeFitOptions& options);

// The range of the training rows by column. Residuals of trees fade with the distance of a row from it.
struct TrainingRange {
  std::vector<float> min_features;
  std::vector<float> max_features;

  void extend_by_row(std::span<const float> row);
  // 1 inside the range. Outside, halves for each unit by which the worst column is beyond it; most columns are natural
  // logarithms of sizes.
  double trust_factor(std::span<const float> row) const;
};

}  // namespace joulemap::predict
