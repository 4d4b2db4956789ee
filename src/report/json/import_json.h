// SPDX-License-Identifier: Apache-2.0
//
// `joulemap import --json`: one object, schema joulemap.import/1.
#pragma once

#include <string>

#include "model/import_result.h"

namespace joulemap::report {

std::string import_json(const ImportResult& result);

}  // namespace joulemap::report
