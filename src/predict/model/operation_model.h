// SPDX-License-Identifier: Apache-2.0
//
// Time and energy of one operation on one GPU: fitted physics (physics.h) times the exponential of two residuals. One
// is interpolated from similar operations (residual_kriging.h). The other is learned from all of them
// (learned_residual.h) and fades outside of the measured range. Values; queries are pure.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "predict/fit/measured_operations.h"
#include "predict/graph/operation.h"
#include "predict/model/datasheet.h"
#include "predict/model/features.h"
#include "predict/model/learned_residual.h"
#include "predict/model/physics.h"
#include "predict/model/regression_trees.h"
#include "predict/model/residual_kriging.h"

namespace joulemap::predict {

// Extra columns for the learner, from residual_kriging.h: interpolated residuals, kriging variance, a size and the
// alignment.
inline constexpr std::size_t kKrigingFeatureCount = 5;
// Extra columns for the learner of power: logarithms of the time (measured in a fit, else predicted) and of the physical
// power.
inline constexpr std::size_t kPowerFeatureCount = 2;

struct OperationModel {
  Datasheet datasheet;
  TimeCoefficients times;
  EnergyCoefficients energy_coefficients;
  LearnedResidual learned_time;   // inputs: features and kKrigingFeatureCount columns
  LearnedResidual learned_power;  // inputs: features, kPowerFeatureCount and kKrigingFeatureCount columns
  ResidualKriging kriging;
  TrainingRange training_range;  // range of the measured features; empty without measurements: physics alone
};

struct OperationEstimate {
  double time_s = 0;  // GPU time of one call; 0 if it launches nothing
  double energy_j = 0;
  double host_s = 0;  // extra host time, s: optimizer steps and recurrent layers launch many kernels
  double physical_time_s = 0;
  double physical_power_w = 0;
  double trust_factor = 0;  // in the learned residual: 1 within the measured range, 0 far beyond
};

// Estimate for one call. All zero for views, which launch nothing.
OperationEstimate estimate(const OperationModel& model, const Operation& operation, const CallConditions& conditions);

Result<OperationModel> fit_operation_model(std::span<const MeasuredOperation> rows, const Datasheet& datasheet,
                                           Learner learner = Learner::boosting);

// Physics alone, for a GPU without measurements: its datasheet with the coefficients of a measured GPU.
OperationModel make_datasheet_model(const OperationModel& measured, const Datasheet& datasheet);

}  // namespace joulemap::predict
