// SPDX-License-Identifier: Apache-2.0
#include "predict/model/operation_model.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <utility>

#include "predict/graph/recurrent.h"
#include "predict/model/parallel_for.h"

namespace joulemap::predict {
namespace {

// Limit of residuals, natural logarithms. Larger ones are failures of the physics model that should not be learned.
constexpr double kMaxLogResidual = 2.0;
// Weight of rows measured inside networks. They are many and similar, and should not outweigh isolated operations.
constexpr double kInNetworkRowWeight = 0.5;

// Twice the kriging variance (residual_kriging.h) at an operation that was itself measured.
constexpr double kMeasuredOperationVariance = 0.04;
constexpr double kShortOperationWeight = 0.15;
constexpr double kLongOperation_s = 30e-6;
// An optimizer step inside a network: fixed GPU time, and power as a fraction of the limit, because it is memory-bound.
constexpr double kMinOptimizerStep_s = 5e-6;
constexpr double kOptimizerPowerFraction = 0.8;

// Host time for one launch inside a cuDNN call, s, without PyTorch's overhead.
constexpr double kLibraryLaunchHost_s = 2.2e-6;

// GPU time of an optimizer step in units of bytes / memory bandwidth. By default PyTorch runs one kernel for each sum
// and product, and each reads and writes its tensors (seen in 199 profiles of networks).
double optimizer_memory_passes(const Operation& operation) {
  if (operation.parameters.get("fused", 0) != 0) return 1.2;
  if (operation.form == "sgd") return 2.0;
  return operation.form == "momentum" ? 2.5 : 3.6;
}

// Weight of a row in the fit. Long operations count more, because networks spend their energy on them.
double tree_fit_weight(double time_s) {
  return kShortOperationWeight + (1 - kShortOperationWeight) * std::min(1.0, time_s / kLongOperation_s);
}

struct OperationDescription {
  PhysicsObservation physics_observation;
  double physical_time_s = 0;
  std::vector<float> features;
};

OperationDescription describe_operation(const OperationModel& model, const Operation& operation,
                                        const CallConditions& conditions) {
  const OperationWork work = compute_work(operation);
  OperationDescription description;
  description.physics_observation.groups = coefficient_group_names(operation);
  description.physics_observation.terms = time_terms(operation, work, model.datasheet, conditions.is_cache_cold);
  description.physical_time_s = physical_time_s(model.times, description.physics_observation);
  description.features = make_features(operation, work, description.physics_observation.terms, model.datasheet,
                                       conditions, description.physical_time_s);
  return description;
}

std::vector<float> append_power_features(std::vector<float> features, double time_s, double power_w) {
  features.push_back(static_cast<float>(std::log(time_s)));
  features.push_back(static_cast<float>(std::log(power_w)));
  return features;
}

std::vector<float> append_kriging_features(std::vector<float> features, const Operation& operation,
                                           const InterpolatedResidual& kriging) {
  for (const double value : {kriging.time_residual, kriging.power_residual, kriging.kriging_variance})
    features.push_back(static_cast<float>(value));
  const ResidualSample target = make_residual_sample(operation, 0, 0);
  features.push_back(static_cast<float>(target.log_sizes[1]));
  features.push_back(static_cast<float>(target.alignment_class));
  return features;
}

std::vector<PhysicsObservation> make_physics_observations(std::span<const MeasuredOperation> rows,
                                                          const Datasheet& datasheet) {
  std::vector<PhysicsObservation> observations(rows.size());
  parallel_for(rows.size(), [&](std::size_t index) {
    const MeasuredOperation& row = rows[index];
    const OperationWork work = compute_work(row.operation);
    observations[index] = {coefficient_group_names(row.operation),
                           time_terms(row.operation, work, datasheet, row.is_cache_cold), row.time_s,
                           row.energy_j.value_or(0)};
  });
  return observations;
}

struct LogResiduals {
  double physical_time_s = 0;
  double time_residual = 0;
  double power_residual = 0;
};

LogResiduals compute_log_residuals(const OperationModel& model, const MeasuredOperation& row,
                                   const PhysicsObservation& observation) {
  LogResiduals residuals;
  residuals.physical_time_s = physical_time_s(model.times, observation);
  const double time = std::log(row.time_s / residuals.physical_time_s);
  residuals.time_residual = std::clamp(time, -kMaxLogResidual, kMaxLogResidual);
  if (row.energy_j)
    residuals.power_residual = std::log(*row.energy_j / row.time_s /
                                        physical_power_w(model.energy_coefficients, observation, model.datasheet));
  return residuals;
}

bool is_isolated_measurement(const MeasuredOperation& row) { return row.energy_j && !row.in_network; }

// Kriging residual of each row without its own sample. With it as an input, a learner finds how far to trust the kriging.
std::vector<InterpolatedResidual> leave_one_out_residuals(const ResidualKriging& kriging,
                                                          std::span<const MeasuredOperation> rows,
                                                          std::span<const LogResiduals> residuals) {
  std::vector<InterpolatedResidual> interpolated(rows.size());
  parallel_for(rows.size(), [&](std::size_t index) {
    const MeasuredOperation& row = rows[index];
    const ResidualSample excluded_sample =
        make_residual_sample(row.operation, residuals[index].time_residual, residuals[index].power_residual);
    interpolated[index] = kriging.interpolate(row.operation, row.is_cache_cold,
                                              is_isolated_measurement(row) ? &excluded_sample : nullptr);
  });
  return interpolated;
}

// An optimizer step inside a network. Measured steps include the time that the host needs for launches. Therefore GPU
// time is computed from bytes, and the time of the isolated step counts as host time.
OperationEstimate estimate_optimizer_step(const OperationModel& model, const Operation& operation) {
  const OperationEstimate standalone_estimate = estimate(model, operation, {});
  const OperationWork work = compute_work(operation);
  OperationEstimate optimizer_estimate = standalone_estimate;
  optimizer_estimate.time_s =
      optimizer_memory_passes(operation) * work.bytes / model.datasheet.memory_bytes_per_s + kMinOptimizerStep_s;
  optimizer_estimate.energy_j = optimizer_estimate.time_s * kOptimizerPowerFraction * model.datasheet.power_limit_w;
  optimizer_estimate.host_s = standalone_estimate.time_s;
  return optimizer_estimate;
}

}  // namespace

OperationEstimate estimate(const OperationModel& model, const Operation& operation, const CallConditions& conditions) {
  if (operation.kind == Kind::view) return {};
  if (operation.kind == Kind::optimizer && conditions.in_network) return estimate_optimizer_step(model, operation);
  OperationDescription description = describe_operation(model, operation, conditions);
  OperationEstimate operation_estimate;
  operation_estimate.physical_time_s = description.physical_time_s;
  const bool has_learned = !model.training_range.min_features.empty() && is_measured(model.times, operation.kind);
  operation_estimate.trust_factor = has_learned ? model.training_range.trust_factor(description.features) : 0;
  const InterpolatedResidual kriging = model.kriging.interpolate(operation, conditions.is_cache_cold);
  // An operation that was itself measured needs no learned residual, except inside a network, where its time may differ.
  const double unknown =
      conditions.in_network
          ? 1
          : std::clamp((kriging.kriging_variance - kMeasuredOperationVariance) / kMeasuredOperationVariance, 0.0, 1.0);
  const double learned_weight = operation_estimate.trust_factor * unknown;
  double residual = kriging.time_residual;
  if (learned_weight > 0)
    residual +=
        learned_weight * model.learned_time.predict(append_kriging_features(description.features, operation, kriging));
  operation_estimate.time_s = operation_estimate.physical_time_s * std::exp(residual);
  operation_estimate.time_s =
      std::max(operation_estimate.time_s, roofline_time_s(description.physics_observation.terms));
  description.physics_observation.time_s = operation_estimate.time_s;
  operation_estimate.physical_power_w =
      physical_power_w(model.energy_coefficients, description.physics_observation, model.datasheet);
  residual = kriging.power_residual;
  if (learned_weight > 0) {
    const auto features = append_power_features(std::move(description.features), operation_estimate.time_s,
                                                operation_estimate.physical_power_w);
    residual += learned_weight * model.learned_power.predict(append_kriging_features(features, operation, kriging));
  }
  const double power_w = operation_estimate.physical_power_w * std::exp(residual);
  operation_estimate.energy_j =
      std::clamp(power_w, model.datasheet.idle_w, 1.2 * model.datasheet.power_limit_w) * operation_estimate.time_s;
  if (operation.kind == Kind::recurrent)
    operation_estimate.host_s = recurrent_kernels(operation) * kLibraryLaunchHost_s;
  return operation_estimate;
}

Result<OperationModel> fit_operation_model(std::span<const MeasuredOperation> rows, const Datasheet& datasheet,
                                           Learner learner) {
  OperationModel model;
  model.datasheet = datasheet;
  const std::vector<PhysicsObservation> physics_observations = make_physics_observations(rows, datasheet);
  std::vector<PhysicsObservation> observations_with_energy;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    if (rows[index].energy_j) observations_with_energy.push_back(physics_observations[index]);
  }
  model.times = fit_time_coefficients(physics_observations);
  model.energy_coefficients = fit_energy_coefficients(observations_with_energy, datasheet.power_limit_w);
  std::vector<LogResiduals> residuals;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const MeasuredOperation& row = rows[index];
    residuals.push_back(compute_log_residuals(model, row, physics_observations[index]));
    const auto& [physical_s, time, power] = residuals.back();
    if (is_isolated_measurement(row))
      model.kriging.add(row.operation, row.is_cache_cold, make_residual_sample(row.operation, time, power));
  }
  const std::vector<InterpolatedResidual> kriging_residuals = leave_one_out_residuals(model.kriging, rows, residuals);
  TreeTrainingData times;
  TreeTrainingData powers;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const MeasuredOperation& row = rows[index];
    const auto& [physical_s, time, power] = residuals[index];
    const std::vector<float> features =
        make_features(row.operation, compute_work(row.operation), physics_observations[index].terms, datasheet,
                      {row.is_cache_cold, row.in_network}, physical_s);
    const double weight = (row.in_network ? kInNetworkRowWeight : 1) * tree_fit_weight(row.time_s);
    const InterpolatedResidual& kriging = kriging_residuals[index];
    times.add(append_kriging_features(features, row.operation, kriging), time - kriging.time_residual, weight);
    model.training_range.extend_by_row(features);
    if (!row.energy_j) continue;
    const double power_w = physical_power_w(model.energy_coefficients, physics_observations[index], datasheet);
    powers.add(append_kriging_features(append_power_features(features, row.time_s, power_w), row.operation, kriging),
               power - kriging.power_residual, weight);
  }
  TreeFitOptions time_options;
  time_options.monotone_constraints.assign(feature_monotonicity().begin(), feature_monotonicity().end());
  time_options.monotone_constraints.resize(feature_monotonicity().size() + kKrigingFeatureCount);
  // Fewer and shallower trees for power: it varies less than time, and only isolated operations measure it.
  TreeFitOptions power_options;
  power_options.boosting_rounds = power_options.boosting_rounds * 2 / 3;
  --power_options.max_depth;
  // The two fits are independent and take most of the time, so they run on two threads.
  std::future<Result<LearnedResidual>> power_fit =
      std::async(std::launch::async, [&] { return fit_learned_residual(learner, powers, power_options); });
  Result<LearnedResidual> learned_time = fit_learned_residual(learner, times, time_options);
  Result<LearnedResidual> learned_power = power_fit.get();
  if (!learned_time) return std::move(learned_time).error();
  if (!learned_power) return std::move(learned_power).error();
  model.learned_time = std::move(*learned_time);
  model.learned_power = std::move(*learned_power);
  return model;
}

OperationModel make_datasheet_model(const OperationModel& measured, const Datasheet& datasheet) {
  return {datasheet, measured.times, measured.energy_coefficients, {}, {}, {}, {}};
}

}  // namespace joulemap::predict
