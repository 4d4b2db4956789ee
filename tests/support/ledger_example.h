// SPDX-License-Identifier: Apache-2.0
//
// A small report by layer, as a recording of a training would give it: for tests of what is made of reports. A GPU
// that was measured, a CPU whose energy is not known, idle and unattributed energy, steps, epochs, samples.
#pragma once

#include "model/report_result.h"

namespace joulemap {

ReportResult example_training();

// The same with every energy of the GPU's layers, and the total, times that factor.
ReportResult example_training_times(double factor);

}  // namespace joulemap
