// SPDX-License-Identifier: Apache-2.0
//
// The known word that a mistyped one most likely means, for messages that ask "did you mean ...?". Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace joulemap {

// Letters to insert, delete, replace, or swap with their neighbour (optimal string alignment distance).
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate with the fewest edits, at most one for every three letters of `word`; the start of a candidate counts
// as one edit. Nothing where no candidate is that near. The first of several that are equally near.
std::optional<std::string> nearest_word(std::string_view word, std::span<const std::string> candidates);

}  // namespace joulemap
