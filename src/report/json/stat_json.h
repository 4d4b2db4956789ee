// SPDX-License-Identifier: Apache-2.0
//
// `joulemap stat --json`: schema joulemap.stat/1, one line. Programs rely on it: keys may be added, never
// removed; what is not known is null, and a diagnostic says why.
#pragma once

#include <string>

#include "model/stat_result.h"

namespace joulemap::report {

std::string stat_json(const StatResult& result);

}  // namespace joulemap::report
