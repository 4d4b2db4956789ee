// SPDX-License-Identifier: Apache-2.0
//
// `joulemap record --json`: schema joulemap.record/1, one line. Keys may be added, never removed.
#pragma once

#include <string>

#include "model/record_result.h"

namespace joulemap::report {

std::string record_json(const RecordResult& result);

}  // namespace joulemap::report
