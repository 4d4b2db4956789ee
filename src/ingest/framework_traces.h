// SPDX-License-Identifier: Apache-2.0
//
// Takes in what the profilers of frameworks left in the folder of a recording: the capture in a recorded process runs them
// for a step now and then and writes <pid>-<n>.xplane.pb (or .onnxruntime.json) and, last, <pid>-<n>.meta. Each trace tells
// how a coarse place of the recording divides among layers; the sum of them becomes shares of an Activity with places of its
// own. Files that were read, or cannot be, are removed. The recorder, after the command has ended; one trace in memory at a
// time.
#pragma once

#include <string>

#include "model/framework_activity.h"

namespace joulemap::ingest {

// Nothing when there is no such folder. The folder itself goes, too.
FrameworkActivity read_framework_traces(const std::string& folder);

}  // namespace joulemap::ingest
