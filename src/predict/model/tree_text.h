// SPDX-License-Identifier: Apache-2.0
//
// Trees as a line of text: one word for each node, parents before children, left before right. `12<3.5` tests whether
// feature 12 is below 3.5, `-0.0123` is a leaf. A few bytes per node keep a profile below a megabyte. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "predict/model/regression_trees.h"

namespace joulemap::predict {

std::string trees_text(const RegressionTrees& trees);

// Reads such a text. All child indices of the result are valid, and all features are below `features`, so that
// RegressionTrees::predict is safe for any input text.
Result<RegressionTrees> read_trees(std::string_view text, std::size_t features);

}  // namespace joulemap::predict
