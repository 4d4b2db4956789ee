// SPDX-License-Identifier: Apache-2.0
//
// Use of the kernel library by `record`: stores the library's entries for the run's kernels in the recording, and adds
// what the recording shows to the library. Failures become diagnostics and never make a recording fail. Main thread.
#pragma once

#include <string>
#include <vector>

#include "model/diagnostics.h"
#include "model/kernel_power.h"
#include "model/record_result.h"

namespace joulemap::cli {

// The library's powers for the kernel classes in this recording, or its parts, before the run.
std::vector<KernelPower> read_library_powers(const std::string& library, const std::string& recording,
                                             Diagnostics& diagnostics);

// Adds the powers fitted to the recording. Skips a large recording, because the user waits for it.
void update_kernel_library(const std::string& library, RecordResult& result);

}  // namespace joulemap::cli
