// SPDX-License-Identifier: Apache-2.0
//
// What `joulemap record` says when the command has ended: a few lines, and where to look further.
#pragma once

#include <string>

#include "model/record_result.h"

namespace joulemap::report {

std::string record_text(const RecordResult& result);

}  // namespace joulemap::report
