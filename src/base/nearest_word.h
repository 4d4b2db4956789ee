// SPDX-License-Identifier: Apache-2.0
//
// Finds the known word that a mistyped word most likely means, for "did you mean ...?" messages. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace joulemap {

// Number of insertions, deletions, replacements and swaps of neighbours (optimal string alignment distance).
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate with the fewest edits, at most one edit per three letters of `word` (at least one). A candidate that
// starts with `word` counts as one edit. Returns nullopt if no candidate is that close, and the first of equally close
// ones.
std::optional<std::string> nearest_word(std::string_view word, std::span<const std::string> candidates);

}  // namespace joulemap
