// SPDX-License-Identifier: Apache-2.0
//
// A small report by layer, like that of a recorded training run, for tests of reports and exports. It has a measured
// GPU, a CPU of unknown energy, idle and unattributed energy, steps, epochs and samples.
#pragma once

#include "model/report_result.h"

namespace joulemap {

ReportResult make_training_report();

// The same with the energies of the GPU's layers, and the total, multiplied by the factor.
ReportResult make_scaled_training_report(double factor);

}  // namespace joulemap
