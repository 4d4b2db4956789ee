// SPDX-License-Identifier: Apache-2.0
//
// JSON representation of an Account, in `report --json` and in disclosures.
#pragma once

#include <optional>

#include "formats/json_writer.h"
#include "model/account.h"

namespace joulemap::report {

// Writes the member "account": null without an account.
void write_account(formats::JsonWriter& json, const std::optional<Account>& account);

}  // namespace joulemap::report
