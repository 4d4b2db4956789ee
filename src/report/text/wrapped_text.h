// SPDX-License-Identifier: Apache-2.0
//
// Wraps paragraphs for a terminal at blanks. A word longer than a line (a path, a rule to copy) is never broken.
#pragma once

#include <string>
#include <string_view>

namespace joulemap::report {

inline constexpr std::size_t kLineWidth = 80;

// `first` begins the first line; later lines are indented by its width. Ends with a line end.
std::string wrap_text(std::string_view first, std::string_view text, std::size_t width = kLineWidth);

}  // namespace joulemap::report
