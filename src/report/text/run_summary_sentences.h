// SPDX-License-Identifier: Apache-2.0
//
// The summary of a run in words, at the top of its page: total energy, active and idle energy of GPUs, and the phase
// and layers with the most energy. Pure.
#pragma once

#include <string>
#include <vector>

#include "model/run_view.h"

namespace joulemap::report {

// Returns the sentences in reading order, without those that the run has no data for.
std::vector<std::string> run_summary_sentences(const RunView& view);

}  // namespace joulemap::report
