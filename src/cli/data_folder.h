// SPDX-License-Identifier: Apache-2.0
//
// Where joulemap keeps what it learned between runs.
#pragma once

#include <string>

namespace joulemap::cli {

// $JOULEMAP_DATA, else $XDG_DATA_HOME/joulemap, else ~/.local/share/joulemap; a program with rights that its caller lacks
// does not let the caller's variables choose: then the home of its user.
std::string calibration_path();
std::string kernel_library_path();

}  // namespace joulemap::cli
