// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/names.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace joulemap::predict {
namespace {

// Levenshtein distance, one row at a time, of at most kMaxComparedCharacters letters: there may be thousands of long
// layer names.
constexpr std::size_t kMaxComparedCharacters = 96;

std::size_t edit_distance(std::string_view left_name, std::string_view right_name) {
  left_name = left_name.substr(0, kMaxComparedCharacters);
  right_name = right_name.substr(0, kMaxComparedCharacters);
  std::vector<std::size_t> row(right_name.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < left_name.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < right_name.size(); ++j) {
      const std::size_t upper_distance = row[j + 1];
      row[j + 1] = std::min({upper_distance + 1, row[j] + 1, diagonal + (left_name[i] == right_name[j] ? 0 : 1)});
      diagonal = upper_distance;
    }
  }
  return row.back();
}

bool is_substring_ignoring_case(std::string_view part, std::string_view full_text) {
  return !part.empty() && full_text.find(part) != std::string_view::npos;
}

}  // namespace

std::string normalized_name(std::string_view name) {
  std::string letters;
  for (const char letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    if (std::isalnum(byte) != 0) letters += static_cast<char>(std::tolower(byte));
  }
  return letters;
}

std::vector<std::string_view> nearest_names(std::string_view name, std::span<const std::string_view> known_names,
                                            std::size_t max_name_count) {
  const std::string requested_name = normalized_name(name);
  std::vector<std::pair<std::size_t, std::string_view>> names_by_distance;
  for (const std::string_view known_name : known_names) {
    const std::string letters = normalized_name(known_name);
    const bool contains_other_name =
        is_substring_ignoring_case(requested_name, letters) || is_substring_ignoring_case(letters, requested_name);
    names_by_distance.emplace_back(
        edit_distance(requested_name, letters) + (contains_other_name ? 0 : kMaxComparedCharacters), known_name);
  }
  std::sort(names_by_distance.begin(), names_by_distance.end());
  names_by_distance.erase(std::unique(names_by_distance.begin(), names_by_distance.end()), names_by_distance.end());
  std::vector<std::string_view> closest_names;
  for (const auto& [distance, known_name] : names_by_distance) {
    if (closest_names.size() == max_name_count) break;
    closest_names.push_back(known_name);
  }
  return closest_names;
}

}  // namespace joulemap::predict
