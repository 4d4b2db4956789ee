// SPDX-License-Identifier: Apache-2.0
//
// Why something draws, as rows of every JSON report have it.
#pragma once

#include <optional>

#include "formats/json_writer.h"
#include "model/cause_class.h"

namespace joulemap::formats {

// The members "cause", "cause_basis" and "cause_s": {"compute", "memory", "launch", "synchronisation"}; null each where
// nothing is known.
void write_cause(JsonWriter& json, const std::optional<Cause>& cause);

}  // namespace joulemap::formats
