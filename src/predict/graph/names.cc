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

std::size_t edit_distance(std::string_view a, std::string_view b) {
  a = a.substr(0, kMaxComparedCharacters);
  b = b.substr(0, kMaxComparedCharacters);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] == b[j] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

bool is_substring_ignoring_case(std::string_view part, std::string_view whole) {
  return !part.empty() && whole.find(part) != std::string_view::npos;
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

std::vector<std::string_view> nearest_names(std::string_view name, std::span<const std::string_view> known,
                                            std::size_t most) {
  const std::string wanted = normalized_name(name);
  std::vector<std::pair<std::size_t, std::string_view>> ranked;
  for (const std::string_view one : known) {
    const std::string letters = normalized_name(one);
    const bool contains_other_name =
        is_substring_ignoring_case(wanted, letters) || is_substring_ignoring_case(letters, wanted);
    ranked.emplace_back(edit_distance(wanted, letters) + (contains_other_name ? 0 : kMaxComparedCharacters), one);
  }
  std::sort(ranked.begin(), ranked.end());
  ranked.erase(std::unique(ranked.begin(), ranked.end()), ranked.end());
  std::vector<std::string_view> nearest;
  for (const auto& [far, one] : ranked) {
    if (nearest.size() == most) break;
    nearest.push_back(one);
  }
  return nearest;
}

}  // namespace joulemap::predict
