// SPDX-License-Identifier: Apache-2.0
//
// Trees: a sum of regression trees, and how it is fitted. Fitting is XGBoost's work; asking is ours, because a profile
// holds trees as plain numbers and a prediction should not wait for a library of five megabytes to load. Values; asking
// is pure and safe from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace joulemap::predict {

struct TreeNode {
  std::int32_t feature = -1;  // of a leaf -1
  float value = 0;            // goes left below it; of a leaf what it adds
  std::int32_t left = 0;      // indices into Trees::nodes
  std::int32_t right = 0;
};

struct Trees {
  std::vector<TreeNode> nodes;
  std::vector<std::int32_t> roots;

  double ask(std::span<const float> features) const;
};

struct TreeRows {
  std::size_t columns = 0;
  std::vector<float> features;  // row by row
  std::vector<float> targets;
  std::vector<float> weights;

  std::size_t size() const { return targets.size(); }
  void add(std::span<const float> row, double target, double weight);
};

struct TreeOptions {
  int rounds = 165;
  int depth = 7;
  double rate = 0.11;
  double row_share = 0.8;
  double column_share = 0.6;
  double least_weight = 2;      // of the rows of a leaf
  double pull = 2;              // of a leaf towards 0
  std::vector<int> directions;  // by column: +1 may only rise, -1 only fall; empty: any
};

// Opens libxgboost.so.0 when it is first needed; says what to install where there is none. One thread: a second one
// that waits for a busy core makes it several times slower. The same rows give the same trees.
Result<Trees> fit_trees(const TreeRows& rows, const TreeOptions& options);

// How far outside of what was learned from a row lies, column by column; residuals are taken back by it.
struct Box {
  std::vector<float> least;
  std::vector<float> most;

  void include(std::span<const float> row);
  // 1 inside, falling to 0 where a size is several times beyond; columns are logarithms.
  double trust(std::span<const float> row) const;
};

}  // namespace joulemap::predict
