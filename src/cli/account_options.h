// SPDX-License-Identifier: Apache-2.0
//
// Options of carbon and price: --region, --gco2-per-kwh, --carbon-data, --pue, --price-per-kwh, --embodied-kg and
// --lifetime-years.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "model/carbon_account.h"

namespace joulemap::cli {

struct AccountFlags {
  std::string region;
  std::optional<double> gco2_per_kwh;
  std::string carbon_data_file;
  double power_usage_effectiveness = 1;
  std::optional<double> price_per_kwh;
  std::optional<double> embodied_co2_kg;
  double lifetime_years = 4;  // of servers: common depreciation time
  // The declared options: those of the command line take precedence over those of joulemap.toml. Null before.
  const CLI::Option* region_option = nullptr;
  const CLI::Option* gco2_option = nullptr;
  const CLI::Option* carbon_data_option = nullptr;
};

// Declares the options on `verb`. `flags` must outlive the parser.
void add_account_flags(CLI::App& verb, AccountFlags& flags);

// Reads the file of --carbon-data and finds the region. A number takes precedence over a region, and the command line
// over joulemap.toml. Fails if a region is given for a time series, which has none.
Result<CarbonAccountAssumptions> parse_account_assumptions(const AccountFlags& flags);

}  // namespace joulemap::cli
