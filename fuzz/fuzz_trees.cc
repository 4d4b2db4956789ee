// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the regression trees of a GPU profile. The first byte modulo 80 is the number of features. Trees that were
// read give a finite number for any features, and are the same after writing and reading again.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "predict/model/tree_text.h"

namespace {

using namespace joulemap;
using namespace joulemap::predict;

void predict_arbitrary_rows(const RegressionTrees& trees, std::size_t features) {
  for (const float value : {0.0F, -1e30F, 1e30F, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    const double sum = trees.predict(std::vector<float>(features, value));
    JOULEMAP_CHECK(std::isfinite(sum), "trees whose sum is no number");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t features = data[0] % 80;
  const Result<RegressionTrees> trees = read_trees({reinterpret_cast<const char*>(data) + 1, size - 1}, features);
  if (!trees) return 0;
  predict_arbitrary_rows(*trees, features);
  const Result<RegressionTrees> again = read_trees(trees_text(*trees), features);
  JOULEMAP_CHECK(again.has_value(), "trees that cannot be read again");
  JOULEMAP_CHECK(again->roots == trees->roots && again->nodes.size() == trees->nodes.size(), "other trees than before");
  for (std::size_t i = 0; i < trees->nodes.size(); ++i) {
    JOULEMAP_CHECK(again->nodes[i].feature == trees->nodes[i].feature && again->nodes[i].left == trees->nodes[i].left,
                   "other nodes than before");
  }
  return 0;
}
