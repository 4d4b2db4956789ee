// SPDX-License-Identifier: Apache-2.0
//
// Reads the recording of an attempt and fills in the numbers of its row: energies as in `report`, epochs by integration
// between their marks, power over time, functions with causes, metrics, throttled time. Reads the recording a few times,
// in bounded memory.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "experiment/plan/experiment_spec.h"
#include "model/experiment_data.h"

namespace joulemap::experiment {

// Fills in what the files of the attempt contain. Fails if there is no readable recording; metrics from other files are
// filled in even then.
Status fill_row_from_recording(const std::string& attempt_path, std::span<const MetricSpec> metrics,
                               ExperimentRow& row);

inline constexpr std::string_view kRecordingFileName = "run.joule";

}  // namespace joulemap::experiment
