// SPDX-License-Identifier: Apache-2.0
//
// JSON representation of diagnostics, shared by all reports.
#pragma once

#include "formats/json_writer.h"
#include "model/diagnostics.h"

namespace joulemap {

// Writes the member "diagnostics": [{"code", "count", "message", "remedy"}].
void write_diagnostics(formats::JsonWriter& json, const Diagnostics& diagnostics);

}  // namespace joulemap
