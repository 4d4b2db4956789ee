// SPDX-License-Identifier: Apache-2.0
//
// The result of a run in words, as the page opens with: its energy, what GPUs used it for, what cost most. Pure.
#pragma once

#include <string>
#include <vector>

#include "model/run_view.h"

namespace joulemap::report {

// Sentences in reading order; only those that the run has data for.
std::vector<std::string> answer_sentences(const RunView& view);

}  // namespace joulemap::report
