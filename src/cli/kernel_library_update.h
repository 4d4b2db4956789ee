// SPDX-License-Identifier: Apache-2.0
//
// How `record` uses the kernel library: the recording gets a copy of the entries for its kernels, and the library gets
// the kernel powers that the recording identifies. Failures become diagnostics; the recording stays valid. Main thread.
#pragma once

#include <string>
#include <vector>

#include "model/diagnostics.h"
#include "model/kernel_power.h"
#include "model/record_result.h"

namespace joulemap::cli {

// Entries of the file `library` for the kernels in `recording`, a file or a folder of parts. Empty if there is no
// library or on failure.
std::vector<KernelPower> read_powers_from_kernel_library(const std::string& library, const std::string& recording,
                                                         Diagnostics& diagnostics);

// Fits kernel powers to the recording and adds them to the file `library`. Skips a recording above 64 MiB, because the
// user waits for the end of the command. Adds diagnostics to `result`.
void update_kernel_library(const std::string& library, RecordResult& result);

}  // namespace joulemap::cli
