// SPDX-License-Identifier: Apache-2.0
#include "predict/model/regression_trees.h"

#include <algorithm>
#include <cmath>

namespace joulemap::predict {
namespace {

// If a size is e times beyond the training range, the residual of the trees is halved.
constexpr double kTrustDecayRange = 1.0;

}  // namespace

double RegressionTrees::predict(std::span<const float> features) const {
  double sum = 0;
  for (std::int32_t node_index : roots) {
    while (nodes[static_cast<std::size_t>(node_index)].feature >= 0) {
      const TreeNode& node = nodes[static_cast<std::size_t>(node_index)];
      node_index = features[static_cast<std::size_t>(node.feature)] < node.value ? node.left : node.right;
    }
    sum += nodes[static_cast<std::size_t>(node_index)].value;
  }
  return sum;
}

void TreeTrainingData::add(std::span<const float> row, double target, double weight) {
  columns = row.size();
  features.insert(features.end(), row.begin(), row.end());
  targets.push_back(static_cast<float>(target));
  weights.push_back(static_cast<float>(weight));
}

void TrainingRange::extend_by_row(std::span<const float> row) {
  if (min_features.empty()) {
    min_features.assign(row.begin(), row.end());
    max_features = min_features;
    return;
  }
  for (std::size_t column = 0; column < row.size(); ++column) {
    min_features[column] = std::min(min_features[column], row[column]);
    max_features[column] = std::max(max_features[column], row[column]);
  }
}

double TrainingRange::trust_factor(std::span<const float> row) const {
  double max_excess = 0;
  for (std::size_t column = 0; column < std::min(row.size(), min_features.size()); ++column) {
    max_excess = std::max({max_excess, static_cast<double>(min_features[column] - row[column]),
                           static_cast<double>(row[column] - max_features[column])});
  }
  return std::exp2(-max_excess / kTrustDecayRange);
}

}  // namespace joulemap::predict
