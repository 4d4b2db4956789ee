// SPDX-License-Identifier: Apache-2.0
//
// Output of `joulemap record` after the command has ended: a few lines, and the next commands to run.
#pragma once

#include <string>

#include "model/record_result.h"

namespace joulemap::report {

std::string record_text(const RecordResult& result);

}  // namespace joulemap::report
