// SPDX-License-Identifier: Apache-2.0
//
// Whether this process is recorded, and where its marks go: `joulemap record` sets JOULEMAP_RECORDING to the folder in which
// every process writes its own part, and JOULEMAP_RECORDING_ID to the recording's id.
#pragma once

#include <memory>

#include "capture/mark_log.h"

namespace joulemap::capture {

// nullptr when this process is not recorded. When the part cannot be made, that is said once, on standard error: the
// program goes on.
std::unique_ptr<MarkSink> open_recording_sink();

}  // namespace joulemap::capture
