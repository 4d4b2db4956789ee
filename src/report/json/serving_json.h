// SPDX-License-Identifier: Apache-2.0
//
// Writes the member "serving" of a report: energy of the requests of a serving engine; null without one. Energies are
// null where nothing measured them.
#pragma once

#include <optional>

#include "formats/json_writer.h"
#include "model/serving_result.h"

namespace joulemap::report {

void write_serving(formats::JsonWriter& json, const std::optional<ServingResult>& serving);

}  // namespace joulemap::report
