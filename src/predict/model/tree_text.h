// SPDX-License-Identifier: Apache-2.0
//
// Trees as a line of text, a word for each node, parents before children and left before right: `12<3.5` asks whether
// feature 12 is below 3.5, `-0.0123` is a leaf. A few bytes a node, so that a profile stays below a megabyte. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "predict/model/trees.h"

namespace joulemap::predict {

std::string trees_text(const Trees& trees);

// Every node of the result lies within it and asks for a feature below `features`: asking is safe, whatever the text was.
Result<Trees> read_trees(std::string_view text, std::size_t features);

}  // namespace joulemap::predict
