// SPDX-License-Identifier: Apache-2.0
//
// What `record` does with the kernel library: freezes what it knows of a run's kernels into the recording, and adds what
// the recording taught. Neither ever makes a recording fail: what goes wrong is a diagnostic. Main thread.
#pragma once

#include <string>
#include <vector>

#include "model/diagnostics.h"
#include "model/kernel_power.h"
#include "model/record_result.h"

namespace joulemap::cli {

// What the library knew of the classes in this recording, or its parts, before it was made.
std::vector<KernelPower> known_powers(const std::string& library, const std::string& recording,
                                      Diagnostics& diagnostics);

// Adds what the recording taught. Too large a recording is left alone: the command's user waits for it.
void learn_from(const std::string& library, RecordResult& result);

}  // namespace joulemap::cli
