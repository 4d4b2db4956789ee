// SPDX-License-Identifier: Apache-2.0
//
// Diagnostics as every report shows them: lines for people, an array for programs.
#pragma once

#include <string>

#include "formats/json_writer.h"
#include "model/diagnostics.h"

namespace joulemap::report {

// One paragraph each, indented by a blank; empty when there are none.
std::string diagnostics_text(const Diagnostics& diagnostics);

// The member "diagnostics": [{"code", "count", "message", "remedy"}].
void write_diagnostics(formats::JsonWriter& json, const Diagnostics& diagnostics);

}  // namespace joulemap::report
