// SPDX-License-Identifier: Apache-2.0
//
// Output of `joulemap import` for people, when it writes a recording.
#pragma once

#include <string>

#include "model/import_result.h"

namespace joulemap::report {

std::string import_text(const ImportResult& result);

}  // namespace joulemap::report
