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

// Residuals beyond a factor of e^2 are failures of the physics, which other rows should not learn from.
constexpr double kMostResidual = 2.0;
// Network rows are many and similar; together they should not outweigh the designed operations.
constexpr double kWeightInNetwork = 0.5;

// Twice the kriging variance (residual_kriging.h) at an operation that was itself measured.
constexpr double kSurely = 0.04;
constexpr double kWeightOfShort = 0.15;
constexpr double kLong_s = 30e-6;
// An optimizer step: its fixed time, and its power as a fraction of the limit, because it is memory-bound.
constexpr double kLeastStep_s = 5e-6;
constexpr double kStepPower = 0.8;

// s of the host for one launch inside a cuDNN call, without PyTorch's overhead.
constexpr double kLaunchInLibrary_s = 2.2e-6;

// Passes of an optimizer step over its bytes at full memory bandwidth: by default PyTorch runs one kernel for each of
// the sums and products (seen in 199 profiles of networks).
double passes_of_step(const Operation& operation) {
  if (operation.parameters.get("fused", 0) != 0) return 1.2;
  if (operation.form == "sgd") return 2.0;
  return operation.form == "momentum" ? 2.5 : 3.6;
}

// Weights long operations more, because networks spend their energy on them.
double weight_of(double time_s) { return kWeightOfShort + (1 - kWeightOfShort) * std::min(1.0, time_s / kLong_s); }

struct Described {
  PhysicsRow row;
  double physical_time_s = 0;
  std::vector<float> features;
};

Described described(const OperationModel& model, const Operation& operation, const Situation& situation) {
  const Work work = work_of(operation);
  Described told;
  told.row.groups = groups_of(operation);
  told.row.terms = time_terms(operation, work, model.sheet, situation.cold);
  told.physical_time_s = physical_time_s(model.times, told.row);
  told.features = features_of(operation, work, told.row.terms, model.sheet, situation, told.physical_time_s);
  return told;
}

std::vector<float> with_power(std::vector<float> features, double time_s, double power_w) {
  features.push_back(static_cast<float>(std::log(time_s)));
  features.push_back(static_cast<float>(std::log(power_w)));
  return features;
}

std::vector<float> with_kriging(std::vector<float> features, const Operation& operation, const Interpolated& kriging) {
  for (const double value : {kriging.time, kriging.power, kriging.kriging_variance})
    features.push_back(static_cast<float>(value));
  const ResidualSample here = sample_of(operation, 0, 0);
  features.push_back(static_cast<float>(here.sizes[1]));
  features.push_back(static_cast<float>(here.alignment));
  return features;
}

std::vector<PhysicsRow> physics_rows(std::span<const MeasuredOperation> rows, const Datasheet& sheet) {
  std::vector<PhysicsRow> told(rows.size());
  parallel_for(rows.size(), [&](std::size_t index) {
    const MeasuredOperation& row = rows[index];
    const Work work = work_of(row.operation);
    told[index] = {groups_of(row.operation), time_terms(row.operation, work, sheet, row.cold), row.time_s,
                   row.energy_j.value_or(0)};
  });
  return told;
}

struct Residuals {
  double physical_time_s = 0;
  double time = 0;
  double power = 0;
};

Residuals residuals_of(const OperationModel& model, const MeasuredOperation& row, const PhysicsRow& physics) {
  Residuals residuals;
  residuals.physical_time_s = physical_time_s(model.times, physics);
  const double time = std::log(row.time_s / residuals.physical_time_s);
  residuals.time = std::clamp(time, -kMostResidual, kMostResidual);
  if (row.energy_j)
    residuals.power = std::log(*row.energy_j / row.time_s / physical_power_w(model.energies, physics, model.sheet));
  return residuals;
}

bool is_alone(const MeasuredOperation& row) { return row.energy_j && !row.in_network; }

// Leave-one-out interpolation of each row; from it the trees learn how far to trust the interpolation.
std::vector<Interpolated> leave_one_out_residuals(const ResidualKriging& kriging,
                                                  std::span<const MeasuredOperation> rows,
                                                  std::span<const Residuals> residuals) {
  std::vector<Interpolated> told(rows.size());
  parallel_for(rows.size(), [&](std::size_t index) {
    const MeasuredOperation& row = rows[index];
    const ResidualSample own = sample_of(row.operation, residuals[index].time, residuals[index].power);
    told[index] = kriging.ask(row.operation, row.cold, is_alone(row) ? &own : nullptr);
  });
  return told;
}

// Measured optimizer steps include the host, which launches while the GPU computes. The GPU time therefore follows from
// the bytes, and the measured time counts as host time.
OperationEstimate optimizer_estimate(const OperationModel& model, const Operation& operation) {
  const OperationEstimate alone = estimate(model, operation, {});
  const Work work = work_of(operation);
  OperationEstimate guess = alone;
  guess.time_s = passes_of_step(operation) * work.bytes / model.sheet.memory_bytes_per_s + kLeastStep_s;
  guess.energy_j = guess.time_s * kStepPower * model.sheet.power_limit_w;
  guess.host_s = alone.time_s;
  return guess;
}

}  // namespace

OperationEstimate estimate(const OperationModel& model, const Operation& operation, const Situation& situation) {
  if (operation.kind == Kind::view) return {};
  if (operation.kind == Kind::optimizer && situation.in_network) return optimizer_estimate(model, operation);
  Described told = described(model, operation, situation);
  OperationEstimate guess;
  guess.physical_time_s = told.physical_time_s;
  const bool has_trees = !model.box.least.empty() && is_measured(model.times, operation.kind);
  guess.trust = has_trees ? model.box.trust(told.features) : 0;
  const Interpolated kriging = model.kriging.ask(operation, situation.cold);
  // A measured operation needs no trees, except within a network, where its time may differ.
  const double unknown =
      situation.in_network ? 1 : std::clamp((kriging.kriging_variance - kSurely) / kSurely, 0.0, 1.0);
  const double of_trees = guess.trust * unknown;
  double residual = kriging.time;
  if (of_trees > 0) residual += of_trees * model.time_trees.ask(with_kriging(told.features, operation, kriging));
  guess.time_s = guess.physical_time_s * std::exp(residual);
  guess.time_s = std::max(guess.time_s, least_time_s(told.row.terms));
  told.row.time_s = guess.time_s;
  guess.physical_power_w = physical_power_w(model.energies, told.row, model.sheet);
  residual = kriging.power;
  if (of_trees > 0) {
    const auto features = with_power(std::move(told.features), guess.time_s, guess.physical_power_w);
    residual += of_trees * model.power_trees.ask(with_kriging(features, operation, kriging));
  }
  const double power_w = guess.physical_power_w * std::exp(residual);
  guess.energy_j = std::clamp(power_w, model.sheet.idle_w, 1.2 * model.sheet.power_limit_w) * guess.time_s;
  if (operation.kind == Kind::recurrent) guess.host_s = recurrent_kernels(operation) * kLaunchInLibrary_s;
  return guess;
}

Result<OperationModel> fit_operation_model(std::span<const MeasuredOperation> rows, const Datasheet& sheet,
                                           const TreeOptions& options) {
  OperationModel model;
  model.sheet = sheet;
  const std::vector<PhysicsRow> all = physics_rows(rows, sheet);
  std::vector<PhysicsRow> with_energy;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    if (rows[index].energy_j) with_energy.push_back(all[index]);
  }
  model.times = fit_times(all);
  model.energies = fit_energies(with_energy, sheet.power_limit_w);
  std::vector<Residuals> residuals;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const MeasuredOperation& row = rows[index];
    residuals.push_back(residuals_of(model, row, all[index]));
    const auto& [physical_s, time, power] = residuals.back();
    if (is_alone(row)) model.kriging.add(row.operation, row.cold, sample_of(row.operation, time, power));
  }
  const std::vector<Interpolated> kriging_of = leave_one_out_residuals(model.kriging, rows, residuals);
  TreeRows times;
  TreeRows powers;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const MeasuredOperation& row = rows[index];
    const auto& [physical_s, time, power] = residuals[index];
    const std::vector<float> features = features_of(row.operation, work_of(row.operation), all[index].terms, sheet,
                                                    {row.cold, row.in_network}, physical_s);
    const double weight = (row.in_network ? kWeightInNetwork : 1) * weight_of(row.time_s);
    const Interpolated& kriging = kriging_of[index];
    times.add(with_kriging(features, row.operation, kriging), time - kriging.time, weight);
    model.box.include(features);
    if (!row.energy_j) continue;
    const double power_w = physical_power_w(model.energies, all[index], sheet);
    powers.add(with_kriging(with_power(features, row.time_s, power_w), row.operation, kriging), power - kriging.power,
               weight);
  }
  TreeOptions directed = options;
  directed.directions.assign(feature_directions().begin(), feature_directions().end());
  directed.directions.resize(feature_directions().size() + kKrigingColumns);
  // Power varies less than time, and only isolated operations measure it.
  TreeOptions fewer = options;
  fewer.rounds = options.rounds * 2 / 3;
  fewer.depth = options.depth - 1;
  // The two fits are independent and take most of the time, so they run in parallel.
  std::future<Result<Trees>> power_fit = std::async(std::launch::async, [&] { return fit_trees(powers, fewer); });
  Result<Trees> time_trees = fit_trees(times, directed);
  Result<Trees> power_trees = power_fit.get();
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
