// SPDX-License-Identifier: Apache-2.0
//
// Where a plot goes: a file whose name says its kind (.svg, .png, .pdf), or stdout. SVG is ours; PNG and PDF are made
// of it by rsvg-convert, a program of librsvg, where it is installed. Main thread; it waits for that program.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace joulemap::cli {

// Before the work is done: whether the plot can go there at all. Not to a terminal, not to a kind that cannot be made
// here.
Status can_write_picture(const std::string& path);

// An empty path: stdout.
Status write_picture(const std::string& path, std::string_view svg);

}  // namespace joulemap::cli
