// SPDX-License-Identifier: Apache-2.0
//
// What the reader of our stdout can show: how wide it is, whether it knows more than ASCII, whether it wants colour.
// Asked once, by the main thread.
#pragma once

#include "report/text/text_style.h"

namespace joulemap::cli {

// A terminal: its width (COLUMNS wins), and colour unless NO_COLOR is set or TERM says "dumb". A pipe or a file: 80
// columns (COLUMNS wins there, too), no colour. Characters follow the locale in either.
report::TextStyle style_of_stdout();

// Text with escape sequences or a picture would only confuse it.
bool stdout_is_terminal();

}  // namespace joulemap::cli
