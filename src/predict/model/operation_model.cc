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

// Limit of residuals, natural logarithms. Larger ones are failures of the physics model that the trees should not
// learn.
constexpr double kMaxResidual = 2.0;
// Weight of rows measured inside networks. They are many and similar, and should not outweigh isolated operations.
constexpr double kWeightInNetwork = 0.5;

// Twice the kriging variance (residual_kriging.h) at an operation that was itself measured.
constexpr double kSurely = 0.04;
constexpr double kWeightOfShort = 0.15;
constexpr double kLong_s = 30e-6;
// An optimizer step inside a network: fixed GPU time, and power as a fraction of the limit, because it is memory-bound.
constexpr double kMinStep_s = 5e-6;
constexpr double kStepPower = 0.8;

// Host time for one launch inside a cuDNN call, s, without PyTorch's overhead.
constexpr double kLaunchInLibrary_s = 2.2e-6;

// GPU time of an optimizer step in units of bytes / memory bandwidth. By default PyTorch runs one kernel for each sum
// and product, and each reads and writes its tensors (seen in 199 profiles of networks).
double passes_of_step(const Operation& operation) {
  if (operation.parameters.get("fused", 0) != 0) return 1.2;
  if (operation.form == "sgd") return 2.0;
  return operation.form == "momentum" ? 2.5 : 3.6;
}

// Weight of a row in the fit of trees. Long operations count more, because networks spend their energy on them.
double weight_of(double time_s) { return kWeightOfShort + (1 - kWeightOfShort) * std::min(1.0, time_s / kLong_s); }

struct Described {
  PhysicsObservation row;
  double physical_time_s = 0;
  std::vector<float> features;
};

Described described(const OperationModel& model, const Operation& operation, const CallConditions& conditions) {
  const Work work = work_of(operation);
  Described description;
  description.row.groups = coefficient_groups(operation);
  description.row.terms = time_terms(operation, work, model.sheet, conditions.cold);
  description.physical_time_s = physical_time_s(model.times, description.row);
  description.features =
      features_of(operation, work, description.row.terms, model.sheet, conditions, description.physical_time_s);
  return description;
}

std::vector<float> with_power(std::vector<float> features, double time_s, double power_w) {
  features.push_back(static_cast<float>(std::log(time_s)));
  features.push_back(static_cast<float>(std::log(power_w)));
  return features;
}

std::vector<float> with_kriging(std::vector<float> features, const Operation& operation,
                                const InterpolatedResidual& kriging) {
  for (const double value : {kriging.time, kriging.power, kriging.kriging_variance})
    features.push_back(static_cast<float>(value));
  const ResidualSample target = make_residual_sample(operation, 0, 0);
  features.push_back(static_cast<float>(target.sizes[1]));
  features.push_back(static_cast<float>(target.alignment));
  return features;
}

std::vector<PhysicsObservation> physics_observations(std::span<const MeasuredOperation> rows, const Datasheet& sheet) {
  std::vector<PhysicsObservation> observations(rows.size());
  parallel_for(rows.size(), [&](std::size_t index) {
    const MeasuredOperation& row = rows[index];
    const Work work = work_of(row.operation);
    observations[index] = {coefficient_groups(row.operation), time_terms(row.operation, work, sheet, row.cold),
                           row.time_s, row.energy_j.value_or(0)};
  });
  return observations;
}

struct Residuals {
  double physical_time_s = 0;
  double time = 0;
  double power = 0;
};

Residuals residuals_of(const OperationModel& model, const MeasuredOperation& row, const PhysicsObservation& physics) {
  Residuals residuals;
  residuals.physical_time_s = physical_time_s(model.times, physics);
  const double time = std::log(row.time_s / residuals.physical_time_s);
  residuals.time = std::clamp(time, -kMaxResidual, kMaxResidual);
  if (row.energy_j)
    residuals.power = std::log(*row.energy_j / row.time_s / physical_power_w(model.energies, physics, model.sheet));
  return residuals;
}

bool is_alone(const MeasuredOperation& row) { return row.energy_j && !row.in_network; }

// Kriging residual of each row without its own sample. With it as an input, trees learn how far to trust the kriging.
std::vector<InterpolatedResidual> leave_one_out_residuals(const ResidualKriging& kriging,
                                                          std::span<const MeasuredOperation> rows,
                                                          std::span<const Residuals> residuals) {
  std::vector<InterpolatedResidual> interpolated(rows.size());
  parallel_for(rows.size(), [&](std::size_t index) {
    const MeasuredOperation& row = rows[index];
    const ResidualSample own = make_residual_sample(row.operation, residuals[index].time, residuals[index].power);
    interpolated[index] = kriging.interpolate(row.operation, row.cold, is_alone(row) ? &own : nullptr);
  });
  return interpolated;
}

// An optimizer step inside a network. Measured steps include the time that the host needs for launches. Therefore GPU
// time is computed from bytes, and the time of the isolated step counts as host time.
OperationEstimate optimizer_estimate(const OperationModel& model, const Operation& operation) {
  const OperationEstimate alone = estimate(model, operation, {});
  const Work work = work_of(operation);
  OperationEstimate guess = alone;
  guess.time_s = passes_of_step(operation) * work.bytes / model.sheet.memory_bytes_per_s + kMinStep_s;
  guess.energy_j = guess.time_s * kStepPower * model.sheet.power_limit_w;
  guess.host_s = alone.time_s;
  return guess;
}

}  // namespace

OperationEstimate estimate(const OperationModel& model, const Operation& operation, const CallConditions& conditions) {
  if (operation.kind == Kind::view) return {};
  if (operation.kind == Kind::optimizer && conditions.in_network) return optimizer_estimate(model, operation);
  Described description = described(model, operation, conditions);
  OperationEstimate guess;
  guess.physical_time_s = description.physical_time_s;
  const bool has_trees = !model.training_range.min_features.empty() && is_measured(model.times, operation.kind);
  guess.trust = has_trees ? model.training_range.trust(description.features) : 0;
  const InterpolatedResidual kriging = model.kriging.interpolate(operation, conditions.cold);
  // An operation that was itself measured needs no trees, except inside a network, where its time may differ.
  const double unknown =
      conditions.in_network ? 1 : std::clamp((kriging.kriging_variance - kSurely) / kSurely, 0.0, 1.0);
  const double of_trees = guess.trust * unknown;
  double residual = kriging.time;
  if (of_trees > 0)
    residual += of_trees * model.time_trees.predict(with_kriging(description.features, operation, kriging));
  guess.time_s = guess.physical_time_s * std::exp(residual);
  guess.time_s = std::max(guess.time_s, roofline_time_s(description.row.terms));
  description.row.time_s = guess.time_s;
  guess.physical_power_w = physical_power_w(model.energies, description.row, model.sheet);
  residual = kriging.power;
  if (of_trees > 0) {
    const auto features = with_power(std::move(description.features), guess.time_s, guess.physical_power_w);
    residual += of_trees * model.power_trees.predict(with_kriging(features, operation, kriging));
  }
  const double power_w = guess.physical_power_w * std::exp(residual);
  guess.energy_j = std::clamp(power_w, model.sheet.idle_w, 1.2 * model.sheet.power_limit_w) * guess.time_s;
  if (operation.kind == Kind::recurrent) guess.host_s = recurrent_kernels(operation) * kLaunchInLibrary_s;
  return guess;
}

Result<OperationModel> fit_operation_model(std::span<const MeasuredOperation> rows, const Datasheet& sheet,
                                           const TreeFitOptions& options) {
  OperationModel model;
  model.sheet = sheet;
  const std::vector<PhysicsObservation> all = physics_observations(rows, sheet);
  std::vector<PhysicsObservation> with_energy;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    if (rows[index].energy_j) with_energy.push_back(all[index]);
  }
  model.times = fit_time_coefficients(all);
  model.energies = fit_energy_coefficients(with_energy, sheet.power_limit_w);
  std::vector<Residuals> residuals;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const MeasuredOperation& row = rows[index];
    residuals.push_back(residuals_of(model, row, all[index]));
    const auto& [physical_s, time, power] = residuals.back();
    if (is_alone(row)) model.kriging.add(row.operation, row.cold, make_residual_sample(row.operation, time, power));
  }
  const std::vector<InterpolatedResidual> kriging_of = leave_one_out_residuals(model.kriging, rows, residuals);
  TreeTrainingData times;
  TreeTrainingData powers;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const MeasuredOperation& row = rows[index];
    const auto& [physical_s, time, power] = residuals[index];
    const std::vector<float> features = features_of(row.operation, work_of(row.operation), all[index].terms, sheet,
                                                    {row.cold, row.in_network}, physical_s);
    const double weight = (row.in_network ? kWeightInNetwork : 1) * weight_of(row.time_s);
    const InterpolatedResidual& kriging = kriging_of[index];
    times.add(with_kriging(features, row.operation, kriging), time - kriging.time, weight);
    model.training_range.extend(features);
    if (!row.energy_j) continue;
    const double power_w = physical_power_w(model.energies, all[index], sheet);
    powers.add(with_kriging(with_power(features, row.time_s, power_w), row.operation, kriging), power - kriging.power,
               weight);
  }
  TreeFitOptions directed = options;
  directed.monotone_constraints.assign(feature_monotonicity().begin(), feature_monotonicity().end());
  directed.monotone_constraints.resize(feature_monotonicity().size() + kKrigingColumns);
  // Fewer and shallower trees for power: it varies less than time, and only isolated operations measure it.
  TreeFitOptions fewer = options;
  fewer.boosting_rounds = options.boosting_rounds * 2 / 3;
  fewer.max_depth = options.max_depth - 1;
  // The two fits are independent and take most of the time, so they run on two threads.
  std::future<Result<RegressionTrees>> power_fit =
      std::async(std::launch::async, [&] { return fit_trees(powers, fewer); });
  Result<RegressionTrees> time_trees = fit_trees(times, directed);
  Result<RegressionTrees> power_trees = power_fit.get();
  if (!time_trees) return std::move(time_trees).error();
  if (!power_trees) return std::move(power_trees).error();
  model.time_trees = std::move(*time_trees);
  model.power_trees = std::move(*power_trees);
  return model;
}

OperationModel datasheet_model(const OperationModel& measured, const Datasheet& sheet) {
  return {sheet, measured.times, measured.energies, {}, {}, {}, {}};
}

}  // namespace joulemap::predict
