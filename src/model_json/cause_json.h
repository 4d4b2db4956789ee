// SPDX-License-Identifier: Apache-2.0
//
// JSON representation of the cause of energy use, shared by the rows of all reports.
#pragma once

#include <optional>

#include "formats/json_writer.h"
#include "model/cause_class.h"

namespace joulemap {

// Writes the members "cause", "cause_basis" and "cause_s": {"compute", "memory", "launch", "synchronisation"}; each is
// null if the cause is unknown.
void write_energy_cause(formats::JsonWriter& json, const std::optional<EnergyCause>& cause);

}  // namespace joulemap
