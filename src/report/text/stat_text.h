// SPDX-License-Identifier: Apache-2.0
//
// `joulemap stat` for people: one table in the manner of `perf stat`, fitting 80 columns, readable without colour.
#pragma once

#include <string>

#include "model/stat_result.h"

namespace joulemap::report {

// The table of all runs together.
std::string stat_text(const StatResult& result);

// The lines of one interval of -I, a domain each; `first` puts the header above.
std::string stat_interval_text(const StatInterval& interval, bool first);

}  // namespace joulemap::report
