// SPDX-License-Identifier: Apache-2.0
//
// Paragraphs for a terminal: long texts broken at blanks. A word that is longer than a line (a path, a rule to copy)
// is never broken.
#pragma once

#include <string>
#include <string_view>

namespace joulemap::report {

inline constexpr std::size_t kLineWidth = 80;

// `first` starts the first line, as many blanks every further one. Ends with a line end.
std::string wrapped(std::string_view first, std::string_view text, std::size_t width = kLineWidth);

}  // namespace joulemap::report
