// SPDX-License-Identifier: Apache-2.0
#include "cli/account_options.h"

#include "account/carbon_series.h"
#include "account/carbon_table.h"
#include "cli/model_file.h"
#include "cli/value_checks.h"

namespace joulemap::cli {
namespace {

Result<std::optional<CarbonIntensity>> carbon_of(const AccountFlags& flags) {
  if (flags.gco2_per_kwh) return std::optional(CarbonIntensity{*flags.gco2_per_kwh, {}, flags.region, "given", {}});
  if (flags.carbon_data.empty() && flags.region.empty()) return std::optional<CarbonIntensity>();
  std::vector<account::CarbonRegion> table;
  if (flags.carbon_data.empty()) {
    table = account::built_in_carbon_table();
  } else {
    const Result<std::string> text = read_maybe_gzip(flags.carbon_data);
    if (!text) return text.error();
    if (account::is_carbon_series(*text)) {
      Result<std::vector<CarbonPoint>> series = account::read_carbon_series(*text, flags.carbon_data);
      if (!series) return std::move(series).error();
      return std::optional(CarbonIntensity{0, std::move(*series), flags.region, flags.carbon_data, {}});
    }
    Result<std::vector<account::CarbonRegion>> given = account::read_carbon_table(*text, flags.carbon_data);
    if (!given) return std::move(given).error();
    table = std::move(*given);
    if (flags.region.empty())
      return Error{ErrorCode::usage, "--carbon-data is a table of regions", "select one: --region NAME"};
  }
  Result<CarbonIntensity> found = account::find_region(table, flags.region);
  if (!found) return std::move(found).error();
  return std::optional(std::move(*found));
}

}  // namespace

void add_account_flags(CLI::App& verb, AccountFlags& flags) {
  verb.add_option("--region", flags.region,
                  "region of the grid: a country (France, FR) or a cloud region (gcp:europe-west9, aws:eu-west-3)")
      ->type_name("NAME");
  verb.add_option("--gco2-per-kwh", flags.gco2_per_kwh, "carbon intensity of the grid in g/kWh; replaces --region")
      ->type_name("GRAMS")
      ->check(number_between(0, 1e5));
  verb.add_option("--carbon-data", flags.carbon_data,
                  "CSV with carbon intensities: of regions (region,gco2_per_kwh) or over time (time,gco2_per_kwh)")
      ->type_name("FILE");
  verb.add_option("--pue", flags.pue, "power usage effectiveness of the data center (1), for CO2 and price")
      ->type_name("X")
      ->check(number_between(1, 10));
  verb.add_option("--price-per-kwh", flags.price_per_kwh, "price per kWh, in any currency")
      ->type_name("P")
      ->check(number_between(0, 1e9));
  verb.add_option("--embodied-kg", flags.embodied_kg,
                  "kg of CO2e of making the hardware; the run gets its share of time")
      ->type_name("N")
      ->check(number_between(0, 1e9));
  verb.add_option("--lifetime-years", flags.lifetime_years, "lifetime of the hardware (4), for --embodied-kg")
      ->type_name("N")
      ->check(number_between(0.01, 100));
}

Result<AccountAssumptions> account_assumptions(const AccountFlags& flags) {
  AccountAssumptions assumptions;
  Result<std::optional<CarbonIntensity>> carbon = carbon_of(flags);
  if (!carbon) return std::move(carbon).error();
  assumptions.carbon = std::move(*carbon);
  assumptions.pue = flags.pue;
  assumptions.price_per_kwh = flags.price_per_kwh;
  if (flags.embodied_kg) assumptions.embodied = EmbodiedCarbon{*flags.embodied_kg, flags.lifetime_years};
  return assumptions;
}

}  // namespace joulemap::cli
