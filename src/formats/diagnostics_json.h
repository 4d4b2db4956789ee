// SPDX-License-Identifier: Apache-2.0
//
// Diagnostics as every JSON report has them.
#pragma once

#include "formats/json_writer.h"
#include "model/diagnostics.h"

namespace joulemap::formats {

// The member "diagnostics": [{"code", "count", "message", "remedy"}].
void write_diagnostics(JsonWriter& json, const Diagnostics& diagnostics);

}  // namespace joulemap::formats
