// SPDX-License-Identifier: Apache-2.0
//
// What calibrations and the kernel library have in common: files that are kept between runs. Each is a recording that holds
// nothing else, so that it is written, checked and read like any other; a new one replaces the old one at once, and who
// reads meanwhile sees one or the other. Any thread; two that write the same file must agree on who does (library_file.cc).
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "recording/recording_writer.h"

namespace joulemap::recording {

// The folder in which the file is to lie.
Status make_folder_of(const std::string& path);

// Written beside it first. `kind`: "calibration", say, as its source is called.
Status replace_kept_file(const std::string& named, const std::string& kind,
                         const std::function<void(RecordingWriter&)>& fill);

}  // namespace joulemap::recording
