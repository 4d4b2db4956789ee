// SPDX-License-Identifier: Apache-2.0
//
// Atomic file replacement for the calibrations and the kernel library, which persist between runs. Each file is a
// recording that contains nothing else, so it is written, verified and read like any recording. A new file replaces the
// old one atomically; concurrent readers see either one. Any thread; concurrent writers of the same file need a lock
// (kernel_library_file.cc).
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "recording/recording_writer.h"

namespace joulemap::recording {

// Creates the folder that contains `path`.
Status create_parent_folder(const std::string& path);

// Writes a temporary file beside the target and renames it. `add_content` adds the content. `kind`, for example
// "calibration", becomes the recording ID and the role of the source.
Status replace_recording_atomically(const std::string& requested_path, const std::string& kind,
                                    const std::function<void(RecordingWriter&)>& add_content);

}  // namespace joulemap::recording
