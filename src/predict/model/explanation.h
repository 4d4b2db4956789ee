// SPDX-License-Identifier: Apache-2.0
//
// Why an operation is predicted to take what it takes: what the datasheet grants it, what physics makes of that, what
// the trees add, and how far they can be believed. What `predict --explain` and `card` show. Pure; seconds and joules.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "predict/graph/graph.h"
#include "predict/model/operation_model.h"
#include "predict/model/predictor.h"

namespace joulemap::predict {

// What takes most of the time, by physics.
enum class Bound : std::uint8_t { launch, memory, compute };
std::string_view name_of(Bound bound);

struct Explanation {
  Operation operation;
  Work work;
  Terms granted = {};  // by the datasheet
  Terms parts = {};    // of the time by physics: granted times fitted
  Bound bound = Bound::launch;
  OperationEstimate estimate;  // of one, whatever the operation's count
  double physical_j = 0;
  double tree_factor = 1;  // of the energy: what trees make of physics
  std::vector<float> features;
};

// In the order of Terms: launch, tiles, cache, memory, elements, arithmetic.
std::span<const std::string_view> term_names();

Explanation explain(const OperationModel& model, const Operation& operation, const Situation& situation);

// Of every operation of a layer, as predict() sees them. Empty where there is no such layer.
std::vector<Explanation> explain_layer(const Profile& profile, const Graph& graph, const PredictOptions& options,
                                       std::string_view layer);

}  // namespace joulemap::predict
