// SPDX-License-Identifier: Apache-2.0
//
// Paths of files that joulemap stores between runs.
#pragma once

#include <string>
#include <string_view>

namespace joulemap::cli {

// Their folder is $JOULEMAP_DATA, else $XDG_DATA_HOME/joulemap, else ~/.local/share/joulemap. If joulemap runs with
// more privileges than its caller (AT_SECURE), it ignores these variables and HOME, and uses the home directory of the
// real user from the password database.
std::string calibration_path();
std::string kernel_library_path();
// Prediction profile of a GPU, written by `calibrate --predict`. `device`: name of the GPU.
std::string device_profile_path(std::string_view device);
// Folder of the measurements of `calibrate --predict`; a later call continues from them.
std::string prediction_measurements_folder();

}  // namespace joulemap::cli
