// SPDX-License-Identifier: Apache-2.0
//
// Paths of the data that joulemap keeps between runs.
#pragma once

#include <string>
#include <string_view>

namespace joulemap::cli {

// The folder is $JOULEMAP_DATA, else $XDG_DATA_HOME/joulemap, else ~/.local/share/joulemap. A program with more rights
// than its caller (AT_SECURE) ignores the caller's variables and uses the home of its user.
std::string calibration_path();
std::string kernel_library_path();
// Profiles of GPUs made on this machine, by the GPU's name.
std::string profile_path(std::string_view device);
// Measurements of `calibrate --predict`, which resumes from them.
std::string prediction_rows_folder();

}  // namespace joulemap::cli
