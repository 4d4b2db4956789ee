// SPDX-License-Identifier: Apache-2.0
//
// The cause of energy use of a row (model/cause_class.h) as JSON, for all reports.
#pragma once

#include <optional>

#include "formats/json_writer.h"
#include "model/cause_class.h"

namespace joulemap {

// Writes the members "cause", "cause_basis" and "cause_s", an object with the seconds of each class; all three are null
// if the cause is unknown.
void write_energy_cause(formats::JsonWriter& json, const std::optional<EnergyCause>& cause);

}  // namespace joulemap
