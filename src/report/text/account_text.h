// SPDX-License-Identifier: Apache-2.0
//
// The account of a run as text, with its assumptions. Pure.
#pragma once

#include <string>

#include "model/carbon_account.h"
#include "report/text/text_style.h"

namespace joulemap::report {

// A section of the report.
std::string account_text(const CarbonAccount& account, const TextStyle& style);

// Origin of the carbon intensity: "France, 2023, Ember, ...", "given".
std::string carbon_origin_text(const CarbonIntensity& carbon);

}  // namespace joulemap::report
