// SPDX-License-Identifier: Apache-2.0
//
// `joulemap diff` for people: the total, entries that grew, shrank, are new or gone, and the sum of those within the
// noise. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "model/run_difference.h"
#include "report/text/text_style.h"

namespace joulemap::report {

// At most `max_rows` lines under each heading; 0: all.
std::string diff_text(const RunDifference& difference, std::size_t max_rows, const TextStyle& style);

}  // namespace joulemap::report
