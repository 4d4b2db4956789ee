// SPDX-License-Identifier: Apache-2.0
//
// Explains the prediction for one operation: the time at the datasheet's rates, the fitted physics, and the correction
// by kriging and trees with its trust. `predict --explain` prints it. Pure; seconds and joules.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "predict/graph/graph.h"
#include "predict/model/operation_model.h"
#include "predict/model/predictor.h"

namespace joulemap::predict {

// The resource that takes most of the physical time.
enum class LimitingResource : std::uint8_t { launch, memory, compute };
std::string_view name_of(LimitingResource bound);

struct OperationExplanation {
  Operation operation;
  OperationWork work;
  TimeTerms datasheet_terms = {};  // s at the datasheet's rates
  TimeTerms physical_terms = {};   // s of physical time: datasheet_terms times fitted coefficients
  LimitingResource bound = LimitingResource::launch;
  OperationEstimate estimate;  // of one call, regardless of the operation's count
  double physical_j = 0;
  double tree_factor = 1;  // predicted energy / physical_j: the correction by kriging and trees
  std::vector<float> features;
};

OperationExplanation explain_operation(const OperationModel& model, const Operation& operation,
                                       const CallConditions& conditions);

// Explains every operation of a layer among those that predict() uses. Empty if the graph has no such layer.
std::vector<OperationExplanation> explain_layer(const DeviceProfile& profile, const Graph& graph,
                                                const PredictOptions& options, std::string_view layer);

}  // namespace joulemap::predict
