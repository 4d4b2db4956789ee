// SPDX-License-Identifier: Apache-2.0
//
// Options of carbon and price: --region, --gco2-per-kwh, --carbon-data, --pue, --price-per-kwh, --embodied-kg and
// --lifetime-years.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "model/account.h"

namespace joulemap::cli {

struct AccountFlags {
  std::string region;
  std::optional<double> gco2_per_kwh;
  std::string carbon_data;
  double pue = 1;
  std::optional<double> price_per_kwh;
  std::optional<double> embodied_kg;
  double lifetime_years = 4;  // of servers: common depreciation time
};

// Declares the options on `verb`. `flags` must outlive the parser.
void add_account_flags(CLI::App& verb, AccountFlags& flags);

// Reads the file of --carbon-data and finds the region. A number takes precedence over a region, so that the command
// line can replace a region of joulemap.toml.
Result<AccountAssumptions> account_assumptions(const AccountFlags& flags);

}  // namespace joulemap::cli
