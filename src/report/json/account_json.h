// SPDX-License-Identifier: Apache-2.0
//
// JSON representation of a CarbonAccount, in `report --json` and in disclosures.
#pragma once

#include <optional>

#include "formats/json_writer.h"
#include "model/carbon_account.h"

namespace joulemap::report {

// Writes the member "account": null without an account.
void write_account(formats::JsonWriter& json, const std::optional<CarbonAccount>& account);

}  // namespace joulemap::report
