// SPDX-License-Identifier: Apache-2.0
//
// Opens the part of the recording that this process writes. `joulemap record` sets JOULEMAP_RECORDING to the folder in
// which every process writes its own part, and JOULEMAP_RECORDING_ID to the recording's id.
#pragma once

#include <memory>

#include "capture/mark_log.h"

namespace joulemap::capture {

// Returns nullptr when this process is not recorded. When the part cannot be created, prints one line to standard error
// and returns nullptr; the program goes on.
std::unique_ptr<CaptureSink> open_recording_sink();

}  // namespace joulemap::capture
