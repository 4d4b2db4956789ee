// SPDX-License-Identifier: Apache-2.0
//
// Features of an operation for the regression trees: logarithms of sizes, how well sizes fit the GPU (tiles, waves,
// cache), and the kind of operation. Pure. Columns have the order of feature_names(), which is part of a profile's
// format.
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

// Monotonicity constraint of each column: the residual of time may only rise with it (+1), only fall (-1), or either
// (0).
std::span<const int> feature_monotonicity();

struct CallConditions {
  bool is_cache_cold = false;  // its inputs are not in the cache
  bool in_network = false;     // runs inside a network, not alone in a loop
};
// `physical_time_s`: the time that the fitted physics predicts (physics.h).
std::vector<float> make_features(const Operation& operation, const OperationWork& work, const TimeTerms& terms,
                                 const Datasheet& datasheet, const CallConditions& conditions, double physical_time_s);

}  // namespace joulemap::predict
