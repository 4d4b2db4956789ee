// SPDX-License-Identifier: Apache-2.0
//
// `joulemap stat --json`: schema joulemap.stat/1, one line. Programs read it: keys may be added, never removed.
// Unknown values are null, and a diagnostic gives the reason.
#pragma once

#include <string>

#include "model/stat_result.h"

namespace joulemap::report {

std::string stat_json(const StatResult& result);

}  // namespace joulemap::report
