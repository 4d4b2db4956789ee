// SPDX-License-Identifier: Apache-2.0
#include "cli/account_options.h"

#include <fmt/format.h>

#include "account/carbon_series.h"
#include "account/carbon_table.h"
#include "base/printable_text.h"
#include "cli/model_file.h"
#include "cli/value_checks.h"

namespace joulemap::cli {
namespace {

// Whether the command line contains the option. Defaults from joulemap.toml do not count.
bool is_on_command_line(const CLI::Option* option) { return option != nullptr && option->count() > 0; }

bool is_gco2_value_overridden(const AccountFlags& flags) {
  return !is_on_command_line(flags.gco2_option) &&
         (is_on_command_line(flags.region_option) || is_on_command_line(flags.carbon_data_option));
}

Result<std::optional<CarbonIntensity>> read_carbon_intensity(const AccountFlags& flags) {
  const bool is_decided_on_command_line = is_on_command_line(flags.gco2_option) ||
                                          is_on_command_line(flags.region_option) ||
                                          is_on_command_line(flags.carbon_data_option);
  if (flags.gco2_per_kwh && !flags.carbon_data_file.empty() && !is_decided_on_command_line)
    return Error{ErrorCode::usage, "the configuration sets gco2-per-kwh and carbon-data, which exclude each other",
                 "remove one of them from joulemap.toml"};
  if (flags.gco2_per_kwh && !is_gco2_value_overridden(flags))
    return std::optional(CarbonIntensity{*flags.gco2_per_kwh, {}, flags.region, "given", {}});
  if (flags.carbon_data_file.empty() && flags.region.empty()) return std::optional<CarbonIntensity>();
  std::vector<account::CarbonRegion> table;
  if (flags.carbon_data_file.empty()) {
    table = account::built_in_carbon_table();
  } else {
    const Result<std::string> text = read_plain_or_gzip_file(flags.carbon_data_file);
    if (!text) return text.error();
    if (account::is_carbon_series(*text)) {
      if (is_on_command_line(flags.region_option)) {
        return Error{ErrorCode::usage,
                     fmt::format("{} is a time series of one grid: --region selects nothing in it",
                                 printable(flags.carbon_data_file)),
                     "remove --region; to state the location of the run, add --location"};
      }
      Result<std::vector<CarbonPoint>> series = account::read_carbon_series(*text, flags.carbon_data_file);
      if (!series) return std::move(series).error();
      return std::optional(CarbonIntensity{0, std::move(*series), {}, flags.carbon_data_file, {}});
    }
    Result<std::vector<account::CarbonRegion>> carbon_regions =
        account::read_carbon_table(*text, flags.carbon_data_file);
    if (!carbon_regions) return std::move(carbon_regions).error();
    table = std::move(*carbon_regions);
    if (flags.region.empty())
      return Error{ErrorCode::usage, "--carbon-data is a table of regions", "select one: --region NAME"};
  }
  Result<CarbonIntensity> carbon_intensity = account::find_regional_intensity(table, flags.region);
  if (!carbon_intensity) return std::move(carbon_intensity).error();
  return std::optional(std::move(*carbon_intensity));
}

}  // namespace

void add_account_flags(CLI::App& verb, AccountFlags& flags) {
  flags.region_option =
      verb.add_option("--region", flags.region,
                      "region of the grid: a country (France, FR) or a cloud region (gcp:europe-west9, aws:eu-west-3)")
          ->type_name("NAME");
  CLI::Option* const number =
      verb.add_option("--gco2-per-kwh", flags.gco2_per_kwh, "carbon intensity of the grid in g/kWh; replaces --region")
          ->type_name("GRAMS")
          ->check(number_range_validator(0, 1e5));
  flags.gco2_option = number;
  flags.carbon_data_option =
      verb.add_option("--carbon-data", flags.carbon_data_file,
                      "CSV with carbon intensities: of regions (region,gco2_per_kwh) or over time (time,gco2_per_kwh)")
          ->type_name("FILE")
          ->excludes(number);
  verb.add_option("--pue", flags.power_usage_effectiveness,
                  "power usage effectiveness of the data center, for carbon and price; default: 1")
      ->type_name("X")
      ->check(number_range_validator(1, 10));
  verb.add_option("--price-per-kwh", flags.price_per_kwh, "price per kWh, in any currency")
      ->type_name("P")
      ->check(number_range_validator(0, 1e9));
  verb.add_option("--embodied-kg", flags.embodied_co2_kg,
                  "kg of CO2e emitted in making the hardware; the run is charged its share of the lifetime")
      ->type_name("N")
      ->check(number_range_validator(0, 1e9));
  verb.add_option("--lifetime-years", flags.lifetime_years, "lifetime of the hardware, for --embodied-kg; default: 4")
      ->type_name("N")
      ->check(number_range_validator(0.01, 100));
}

Result<CarbonAccountAssumptions> parse_account_assumptions(const AccountFlags& flags) {
  CarbonAccountAssumptions assumptions;
  Result<std::optional<CarbonIntensity>> carbon = read_carbon_intensity(flags);
  if (!carbon) return std::move(carbon).error();
  assumptions.carbon_intensity = std::move(*carbon);
  assumptions.pue = flags.power_usage_effectiveness;
  assumptions.price_per_kwh = flags.price_per_kwh;
  if (flags.embodied_co2_kg) assumptions.embodied = EmbodiedCarbon{*flags.embodied_co2_kg, flags.lifetime_years};
  return assumptions;
}

}  // namespace joulemap::cli
