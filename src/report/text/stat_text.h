// SPDX-License-Identifier: Apache-2.0
//
// `joulemap stat` for people: one table in the style of `perf stat`; fits 80 columns, needs no colour.
#pragma once

#include <string>

#include "model/stat_result.h"

namespace joulemap::report {

// The table: energies are means over all runs.
std::string stat_text(const StatResult& result);

// The lines of one interval of -I, one per domain. With `has_header`, preceded by a header.
std::string stat_interval_text(const StatInterval& interval, bool has_header);

}  // namespace joulemap::report
