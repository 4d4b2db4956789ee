// SPDX-License-Identifier: Apache-2.0
//
// Capabilities of the output terminal: width, non-ASCII characters, colour. Main thread.
#pragma once

#include "report/text/text_style.h"

namespace joulemap::cli {

enum class Colour { automatic, always, never };  // --color

// A terminal: its width, and colour unless NO_COLOR is set or TERM is "dumb". A pipe or a file: 80 columns, no colour.
// COLUMNS overrides the width, and the locale determines the characters, in both cases.
report::TextStyle style_of_stdout(Colour colour);
report::TextStyle style_of_stderr(Colour colour);

// For text with escape sequences or pictures, which a terminal cannot show.
bool stdout_is_terminal();
bool stderr_is_terminal();

}  // namespace joulemap::cli
