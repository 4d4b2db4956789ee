// SPDX-License-Identifier: Apache-2.0
//
// What an operation takes and draws on one GPU: fitted physics (physics.h) times the exponential of residuals, those of the
// nearest measurements of operations alike (alike.h) and trees' (trees.h), which fade outside of what was measured.
// Values; asking is pure.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "predict/fit/measured_operations.h"
#include "predict/graph/operation.h"
#include "predict/model/alike.h"
#include "predict/model/datasheet.h"
#include "predict/model/features.h"
#include "predict/model/physics.h"
#include "predict/model/trees.h"

namespace joulemap::predict {

// Columns that the trees see of what operations alike tell.
inline constexpr std::size_t kOfAlike = 5;
// Columns that the trees of power see besides: time and power by physics.
inline constexpr std::size_t kOfPower = 2;

struct OperationModel {
  Datasheet sheet;
  TimeCoefficients times;
  EnergyCoefficients energies;
  Trees time_trees;   // of features and kOfAlike columns more
  Trees power_trees;  // of features, time and power by physics, and kOfAlike columns more
  Alike alike;
  Box box;  // of what was measured, in features; empty where nothing was: then physics alone
};

struct OperationEstimate {
  double time_s = 0;  // on the GPU; 0 of what launches nothing
  double energy_j = 0;
  double host_s = 0;  // beside a call's: of an optimizer's step or a recurrent layer, which launch many kernels
  double physical_time_s = 0;
  double physical_power_w = 0;
  double trust = 0;  // of the trees: 1 within what was measured, 0 far beyond
};

// Of the kinds that launch nothing it is zero.
OperationEstimate estimate(const OperationModel& model, const Operation& operation, const Situation& situation);

Result<OperationModel> fit_operation_model(std::span<const MeasuredOperation> rows, const Datasheet& sheet,
                                           const TreeOptions& options = {});

// Physics by the datasheet alone, for a GPU that nothing was measured on: the coefficients of one that was.
OperationModel datasheet_model(const OperationModel& measured, const Datasheet& sheet);

}  // namespace joulemap::predict
