// SPDX-License-Identifier: Apache-2.0
#include "predict/model/explanation.h"

#include <array>

namespace joulemap::predict {
namespace {

constexpr std::array<std::string_view, kTerms> kTermNames = {"launch", "tiles",    "cache",
                                                             "memory", "elements", "arithmetic"};
enum : std::size_t { kLaunch, kTiles, kCache, kMemory, kElements, kArithmetic };

Terms parts_of(const TimeCoefficients& fitted, const Operation& operation, const Terms& granted) {
  const Terms* found = time_coefficients(fitted, groups_of(operation));
  Terms parts = granted;
  for (std::size_t index = 0; index < kTerms; ++index) parts[index] *= found != nullptr ? (*found)[index] : 1;
  return parts;
}

// Terms mean other things for some kinds: the second term of an optimizer is launches for its tensors. The elements
// term is bus bytes for an input, serial groups for a grouped convolution, and step latency for a recurrent layer.
Bound bound_of(const Terms& parts, const Operation& operation) {
  const bool launches = operation.kind == Kind::optimizer;
  const bool waits = operation.kind == Kind::recurrent;
  const bool serial = grouping_of(operation) == Grouping::groups;
  const double launch = parts[kLaunch] + (launches ? parts[kTiles] : 0) + (waits ? parts[kElements] : 0);
  const double compute = parts[kArithmetic] + (launches ? 0 : parts[kTiles]) + (serial ? parts[kElements] : 0);
  const double memory = parts[kCache] + parts[kMemory] + (serial || waits ? 0 : parts[kElements]);
  if (launch >= memory && launch >= compute) return Bound::launch;
  return memory >= compute ? Bound::memory : Bound::compute;
}

}  // namespace

std::string_view name_of(Bound bound) {
  constexpr std::array<std::string_view, 3> kNames = {"launch", "memory", "compute"};
  return kNames.at(static_cast<std::size_t>(bound));
}

std::span<const std::string_view> term_names() { return kTermNames; }

Explanation explain(const OperationModel& model, const Operation& operation, const Situation& situation) {
  Explanation told;
  told.operation = operation;
  told.work = work_of(operation);
  told.granted = time_terms(operation, told.work, model.sheet, situation.cold);
  told.parts = parts_of(model.times, operation, told.granted);
  told.bound = bound_of(told.parts, operation);
  told.estimate = estimate(model, operation, situation);
  told.physical_j = told.estimate.physical_time_s * told.estimate.physical_power_w;
  if (told.physical_j > 0) told.tree_factor = told.estimate.energy_j / told.physical_j;
  told.features =
      features_of(operation, told.work, told.granted, model.sheet, situation, told.estimate.physical_time_s);
  return told;
}

std::vector<Explanation> explain_layer(const Profile& profile, const Graph& graph, const PredictOptions& options,
                                       std::string_view layer) {
  std::vector<Explanation> told;
  for (const Operation& operation : operations_of(graph, options)) {
    if (layer_name_of(operation) == layer)
      told.push_back(explain(profile.operation, operation, {.cold = false, .in_network = true}));
  }
  return told;
}

}  // namespace joulemap::predict
