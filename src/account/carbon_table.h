// SPDX-License-Identifier: Apache-2.0
//
// Tables of yearly carbon intensities by region: the one of data/carbon/intensity.csv, which is built into the program,
// or one of the user. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/carbon_account.h"

namespace joulemap::account {

struct CarbonRegion {
  std::string name;                  // "France", "gcp:europe-west9"
  std::vector<std::string> aliases;  // "FR", "FRA"
  double gco2_per_kwh = 0;
  std::optional<int> year;
  std::string source_citation;
};

// Reads CSV with the columns region, gco2_per_kwh and optionally aliases (separated by blanks), year and source.
Result<std::vector<CarbonRegion>> read_carbon_table(std::string_view text, std::string_view name);

// The table of the program.
std::vector<CarbonRegion> built_in_carbon_table();

// Whether the text is a time series (carbon_series.h) instead of a table, by its header.
bool is_carbon_series(std::string_view text);

// The region of this name or alias, ignoring case. Fails with ErrorCode::usage, and with the nearest names.
Result<CarbonIntensity> find_regional_intensity(const std::vector<CarbonRegion>& table, std::string_view name);

}  // namespace joulemap::account
