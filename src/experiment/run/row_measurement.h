// SPDX-License-Identifier: Apache-2.0
//
// From the recording of an attempt to the numbers of its row: energies as `report` tells them, epochs by integration between
// their marks, functions with their causes, metrics, how long clocks were held down. Reads the recording a few times, in
// bounded memory.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "experiment/plan/experiment_spec.h"
#include "model/experiment_data.h"

namespace joulemap::experiment {

// Fills in what the files of the attempt tell. Fails where there is no recording that can be read; metrics of other files
// are filled in even then.
Status measure_row(const std::string& attempt_path, std::span<const MetricSpec> metrics, ExperimentRow& row);

inline constexpr std::string_view kRecordingName = "run.joule";

}  // namespace joulemap::experiment
