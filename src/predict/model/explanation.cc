// SPDX-License-Identifier: Apache-2.0
#include "predict/model/explanation.h"

#include <array>

namespace joulemap::predict {
namespace {

TimeTerms split_time_by_term(const TimeCoefficients& fitted_coefficients, const Operation& operation,
                             const TimeTerms& datasheet_terms) {
  const TimeTerms* group_coefficients = time_coefficients(fitted_coefficients, coefficient_group_names(operation));
  TimeTerms physical_terms = datasheet_terms;
  for (std::size_t index = 0; index < kPhysicsTermCount; ++index)
    physical_terms[index] *= group_coefficients != nullptr ? (*group_coefficients)[index] : 1;
  return physical_terms;
}

LimitingResource find_limiting_resource(const TimeTerms& parts) {
  const double launch =
      parts[PhysicsTerm::launch] + parts[PhysicsTerm::tensor_launches] + parts[PhysicsTerm::step_latency];
  const double compute = parts[PhysicsTerm::arithmetic] + parts[PhysicsTerm::tiles] + parts[PhysicsTerm::serial_groups];
  const double memory =
      parts[PhysicsTerm::cache] + parts[PhysicsTerm::memory] + parts[PhysicsTerm::elements] + parts[PhysicsTerm::bus];
  if (launch >= memory && launch >= compute) return LimitingResource::launch;
  return memory >= compute ? LimitingResource::memory : LimitingResource::compute;
}

}  // namespace

std::string_view name_of(LimitingResource bound) {
  constexpr std::array<std::string_view, 3> kNames = {"launch", "memory", "compute"};
  return kNames.at(static_cast<std::size_t>(bound));
}

OperationExplanation explain_operation(const OperationModel& model, const Operation& operation,
                                       const CallConditions& conditions) {
  OperationExplanation explanation;
  explanation.operation = operation;
  explanation.work = compute_work(operation);
  explanation.datasheet_terms = time_terms(operation, explanation.work, model.datasheet, conditions.is_cache_cold);
  explanation.physical_terms = split_time_by_term(model.times, operation, explanation.datasheet_terms);
  explanation.bound = find_limiting_resource(explanation.physical_terms);
  explanation.estimate = estimate(model, operation, conditions);
  explanation.physical_j = explanation.estimate.physical_time_s * explanation.estimate.physical_power_w;
  if (explanation.physical_j > 0) explanation.tree_factor = explanation.estimate.energy_j / explanation.physical_j;
  explanation.features = make_features(operation, explanation.work, explanation.datasheet_terms, model.datasheet,
                                       conditions, explanation.estimate.physical_time_s);
  return explanation;
}

std::vector<OperationExplanation> explain_layer(const DeviceProfile& profile, const Graph& graph,
                                                const PredictOptions& options, std::string_view layer) {
  std::vector<OperationExplanation> explanation;
  for (const Operation& operation : list_executed_operations(graph, options)) {
    if (layer_name_of(operation) == layer && has_lower_bound(operation))
      explanation.push_back(
          explain_operation(profile.operation_model, operation, {.is_cache_cold = false, .in_network = true}));
  }
  return explanation;
}

}  // namespace joulemap::predict
