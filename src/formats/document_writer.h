// SPDX-License-Identifier: Apache-2.0
//
// Writes a DocumentValue as JSON. Pure.
#pragma once

#include <string>

#include "formats/document.h"

namespace joulemap::formats {

// One line of JSON.
std::string json_text(const DocumentValue& value);

}  // namespace joulemap::formats
