// SPDX-License-Identifier: Apache-2.0
//
// Properties of the terminal that output goes to: width, character set, colour. Main thread.
#pragma once

#include "report/text/text_style.h"

namespace joulemap::cli {

enum class ColourMode { automatic, always, never };  // values of --color

// Style of text for a stream. On a terminal: its width, and colour unless NO_COLOR is set or TERM is "dumb". For a pipe
// or a file: 80 columns, no colour. In both cases COLUMNS overrides the width (60 to 200), `colour` overrides the
// colour, and the locale determines the characters.
report::TextStyle style_of_stdout(ColourMode colour);
report::TextStyle style_of_stderr(ColourMode colour);

// Used to show progress lines only on a terminal, and to refuse printing SVG or binary formats there.
bool stdout_is_terminal();
bool stderr_is_terminal();

}  // namespace joulemap::cli
