// SPDX-License-Identifier: Apache-2.0
//
// `joulemap import --json` of a recording: schema joulemap.import/1, one line.
#pragma once

#include <string>

#include "model/import_result.h"

namespace joulemap::report {

std::string import_json(const ImportResult& result);

}  // namespace joulemap::report
