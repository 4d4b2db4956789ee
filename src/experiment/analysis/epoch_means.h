// SPDX-License-Identifier: Apache-2.0
//
// Table of the epochs of a cell: energy, time and power, and the gauges and metrics that the epochs have, as means over
// the rows. Pure; joules, seconds, watts.
#pragma once

#include <vector>

#include "experiment/analysis/experiment_table.h"
#include "model/analysis_result.h"

namespace joulemap::experiment {

// Gauges, then metrics, of which at least one epoch has a value. A metric with the name of a gauge is that gauge.
std::vector<EpochColumn> epoch_columns(const ExperimentData& data);

// Energies come only from rows that match the energy basis.
std::vector<EpochMean> epoch_means(const ExperimentData& data, const ExperimentTable& table, const CellRows& cell,
                                   const std::vector<EpochColumn>& columns);

}  // namespace joulemap::experiment
