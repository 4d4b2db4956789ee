// SPDX-License-Identifier: Apache-2.0
#include "base/nearest_word.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace joulemap {
namespace {

constexpr std::size_t kLettersPerEdit = 3;
constexpr std::size_t kMaxWordLength = 80;  // no known word is longer, and the cost grows with the square of the length

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row_before_previous(b.size() + 1);
  std::vector<std::size_t> previous_row(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row_before_previous = std::exchange(previous_row, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution_cost = previous_row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({previous_row[j] + 1, row[j - 1] + 1, substitution_cost});
      const bool is_transposition = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_transposition) row[j] = std::min(row[j], row_before_previous[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::optional<std::string> nearest_word(std::string_view word, std::span<const std::string> candidates) {
  std::optional<std::string> nearest_candidate;
  if (word.size() < 2 || word.size() > kMaxWordLength) return nearest_candidate;
  std::size_t min_edit_count = std::max<std::size_t>(1, word.size() / kLettersPerEdit) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t edit_count = candidate.starts_with(word) ? 1 : edit_distance(word, candidate);
    if (edit_count >= min_edit_count) continue;
    min_edit_count = edit_count;
    nearest_candidate = candidate;
  }
  return nearest_candidate;
}

}  // namespace joulemap
