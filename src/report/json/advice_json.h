// SPDX-License-Identifier: Apache-2.0
//
// JSON of `joulemap advise` (schema joulemap.advice/1).
#pragma once

#include <string>

#include "model/advice.h"

namespace joulemap::report {

std::string advice_json(const Advice& advice);

}  // namespace joulemap::report
