// SPDX-License-Identifier: Apache-2.0
#include "account/carbon_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "base/nearest_word.h"
#include "base/text.h"
#include "formats/csv.h"

namespace joulemap::account {

std::string_view built_in_intensities_csv();  // generated from data/carbon/intensity.csv

namespace {

constexpr std::size_t kMaxSuggestedRegions = 5;
constexpr double kMaxTableIntensity_gco2_per_kwh = 1e5;  // g/kWh; coal is near 1000

std::string to_lower_case(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::map<std::string, std::size_t> find_carbon_columns(const formats::CsvRecord& header) {
  std::map<std::string, std::size_t> columns;
  for (std::size_t i = 0; i < header.size(); ++i) columns.emplace(trim(header[i]), i);
  return columns;
}

// Names of the table from the nearest to the most different one.
std::vector<std::string> nearest_region_names(const std::vector<CarbonRegion>& table, std::string_view requested_name) {
  std::vector<std::pair<std::size_t, std::string>> ranked_names;
  for (const CarbonRegion& region : table) {
    const std::string name = to_lower_case(region.name);
    std::size_t distance = edit_distance(to_lower_case(requested_name), name);
    // A part of a name, such as the region of a cloud without its provider, is near.
    if (requested_name.size() > 2 && name.find(to_lower_case(requested_name)) != std::string::npos) distance = 0;
    ranked_names.emplace_back(distance, region.name);
  }
  std::ranges::stable_sort(ranked_names, {}, &std::pair<std::size_t, std::string>::first);
  std::vector<std::string> names;
  for (const auto& [distance, name] : ranked_names) {
    if (names.size() < kMaxSuggestedRegions) names.push_back(name);
  }
  return names;
}

}  // namespace

Result<std::vector<CarbonRegion>> read_carbon_table(std::string_view text, std::string_view name) {
  const std::vector<formats::CsvRecord> records = formats::read_csv(text);
  const std::map<std::string, std::size_t> columns =
      records.empty() ? std::map<std::string, std::size_t>() : find_carbon_columns(records.front());
  if (!columns.contains("region") || !columns.contains("gco2_per_kwh")) {
    return Error{ErrorCode::usage, fmt::format("{} has no columns region and gco2_per_kwh", name),
                 "the first line must be region,gco2_per_kwh for regions, or time,gco2_per_kwh for a time series"};
  }
  std::vector<CarbonRegion> table;
  for (std::size_t line = 1; line < records.size(); ++line) {
    const auto cell = [&](const std::string& column) -> std::string_view {
      const auto column_entry = columns.find(column);
      return column_entry == columns.end() || column_entry->second >= records[line].size()
                 ? std::string_view()
                 : trim(records[line][column_entry->second]);
    };
    const std::optional<double> intensity = parse_double(cell("gco2_per_kwh"));
    if (cell("region").empty() || !intensity || *intensity < 0 || *intensity > kMaxTableIntensity_gco2_per_kwh) {
      return Error{ErrorCode::usage, fmt::format("{}: row {} has no region or no intensity in g/kWh", name, line),
                   "correct the row"};
    }
    CarbonRegion region{std::string(cell("region")), {}, *intensity, {}, std::string(cell("source"))};
    for (const std::string_view alias : split_whitespace(cell("aliases"))) region.aliases.emplace_back(alias);
    if (const std::optional<std::uint64_t> year = parse_u64(cell("year")); year && *year < 10000)
      region.year = static_cast<int>(*year);
    if (region.source_citation.empty()) region.source_citation = name;
    table.push_back(std::move(region));
  }
  return table;
}

std::vector<CarbonRegion> built_in_carbon_table() {
  Result<std::vector<CarbonRegion>> table = read_carbon_table(built_in_intensities_csv(), "data/carbon/intensity.csv");
  JOULEMAP_CHECK(table.has_value(), "the built-in table of carbon intensities is damaged");
  return std::move(*table);
}

bool is_carbon_series(std::string_view text) {
  const std::vector<formats::CsvRecord> header = formats::read_csv(text.substr(0, text.find('\n')));
  return !header.empty() && find_carbon_columns(header.front()).contains("time");
}

Result<CarbonIntensity> find_regional_intensity(const std::vector<CarbonRegion>& table, std::string_view name) {
  const std::string requested_name = to_lower_case(trim(name));
  for (const CarbonRegion& region : table) {
    const bool is_alias = std::ranges::any_of(
        region.aliases, [&](const std::string& alias) { return to_lower_case(alias) == requested_name; });
    if (to_lower_case(region.name) != requested_name && !is_alias) continue;
    return CarbonIntensity{region.gco2_per_kwh, {}, region.name, region.source_citation, region.year};
  }
  return Error{ErrorCode::usage, fmt::format("no carbon intensity for the region {}", quoted(name)),
               fmt::format("nearest names: {}; or give a number: --gco2-per-kwh 56",
                           fmt::join(nearest_region_names(table, name), ", "))};
}

}  // namespace joulemap::account
