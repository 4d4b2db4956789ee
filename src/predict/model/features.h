// SPDX-License-Identifier: Apache-2.0
//
// What the trees see of an operation: sizes by logarithm, how they meet the GPU's (tiles, waves, cache), and what kind it
// is. Pure; the order of the columns is that of feature_names() and belongs to the profile.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "predict/graph/operation.h"
#include "predict/graph/work.h"
#include "predict/model/datasheet.h"
#include "predict/model/physics.h"

namespace joulemap::predict {

std::span<const std::string_view> feature_names();

// How a column may be used by the trees: with more of it the residual may only rise (+1), fall (-1), or either (0).
std::span<const int> feature_directions();

struct Situation {
  bool cold = false;        // what it reads is not in the cache
  bool in_network = false;  // it stood among others, not alone in a loop
};
// `physical_time_s` by the fitted physics.
std::vector<float> features_of(const Operation& operation, const Work& work, const Terms& terms, const Datasheet& sheet,
                               const Situation& situation, double physical_time_s);

}  // namespace joulemap::predict
