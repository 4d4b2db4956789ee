// SPDX-License-Identifier: Apache-2.0
//
// Wraps a paragraph at blanks. A word that is longer than a line, such as a path, is not broken.
#pragma once

#include <string>
#include <string_view>

namespace joulemap::report {

inline constexpr std::size_t kMaxTextColumns = 80;

// `first_line_prefix` begins the first line; later lines are indented by its width. The result ends with a newline.
std::string wrap_text(std::string_view first_line_prefix, std::string_view text, std::size_t width = kMaxTextColumns);

}  // namespace joulemap::report
