// SPDX-License-Identifier: Apache-2.0
//
// Reads the traces that framework profilers left in the folder of a recording. The capture in a recorded process
// profiles a step now and then; it writes <pid>-<n>.xplane.pb (or .onnxruntime.json) and, last, <pid>-<n>.meta. Each
// trace shows how the time of a coarse scope of the recording splits among layers. The sums over all traces become the
// shares of an Activity, which has its own table of scopes. Files are removed after reading, also if they are
// unreadable. The recorder calls this after the command has ended; one trace is in memory at a time.
#pragma once

#include <string>

#include "model/framework_activity.h"

namespace joulemap::ingest {

// Returns an empty result if the folder does not exist. Removes the folder.
FrameworkActivity read_framework_traces(const std::string& folder);

}  // namespace joulemap::ingest
