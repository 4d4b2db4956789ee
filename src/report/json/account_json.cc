// SPDX-License-Identifier: Apache-2.0
#include "report/json/account_json.h"

namespace joulemap::report {
namespace {

using formats::JsonWriter;

void write_account_assumptions(JsonWriter& json, const CarbonAccountAssumptions& assumptions) {
  json.key("carbon");
  if (assumptions.carbon_intensity) {
    const CarbonIntensity& carbon = *assumptions.carbon_intensity;
    const bool is_time_series = !carbon.series.empty();
    std::optional<double> intensity;
    if (!is_time_series) intensity = carbon.gco2_per_kwh;
    json.begin_object()
        .member("gco2_per_kwh", intensity)
        .member("time_series", is_time_series)
        .text_or_null("region", carbon.region)
        .member("source", carbon.source)
        .member("year", carbon.year)
        .end_object();
  } else {
    json.null();
  }
  json.member("pue", assumptions.pue).member("price_per_kwh", assumptions.price_per_kwh).key("embodied");
  if (assumptions.embodied) {
    json.begin_object()
        .member("kg", assumptions.embodied->kg)
        .member("lifetime_years", assumptions.embodied->lifetime_years)
        .end_object();
  } else {
    json.null();
  }
}

}  // namespace

void write_account(JsonWriter& json, const std::optional<CarbonAccount>& account) {
  json.key("account");
  if (!account) {
    json.null();
    return;
  }
  json.begin_object();
  write_account_assumptions(json, account->assumptions);
  json.key("entries").begin_array();
  for (const CarbonAccountEntry& entry : account->entries) {
    json.begin_object()
        .member("provenance", to_string(entry.provenance))
        .member("energy_j", entry.energy_j)
        .member("uncertainty_j", entry.half_width_j)
        .member("facility_j", entry.facility_j)
        .member("gco2_per_kwh", entry.gco2_per_kwh)
        .member("gco2", entry.gco2)
        .member("gco2_low", entry.gco2_low)
        .member("gco2_high", entry.gco2_high)
        .member("price", entry.price)
        .end_object();
  }
  json.end_array().member("embodied_gco2", account->embodied_gco2).key("equivalents").begin_array();
  for (const EverydayEquivalent& equivalent : account->everyday_equivalents) {
    json.begin_object()
        .member("name", equivalent.name)
        .member("amount", equivalent.amount)
        .member("unit", equivalent.unit)
        .member("source", equivalent.source)
        .end_object();
  }
  json.end_array().end_object();
}

}  // namespace joulemap::report
