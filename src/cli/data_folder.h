// SPDX-License-Identifier: Apache-2.0
//
// Where joulemap keeps what it learned between runs.
#pragma once

#include <string>
#include <string_view>

namespace joulemap::cli {

// $JOULEMAP_DATA, else $XDG_DATA_HOME/joulemap, else ~/.local/share/joulemap; a program with rights that its caller lacks
// does not let the caller's variables choose: then the home of its user.
std::string calibration_path();
std::string kernel_library_path();
// Profiles of GPUs that were made here, by the GPU's name.
std::string profile_path(std::string_view device);
// What `calibrate --predict` measures; it goes on from there the next time.
std::string prediction_rows_folder();

}  // namespace joulemap::cli
