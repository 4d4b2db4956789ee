// SPDX-License-Identifier: Apache-2.0
//
// Stores the kernel library between runs in a recording that contains only powers of kernel classes, so it is written,
// verified and read like any recording. The file is replaced atomically; concurrent writers take turns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/diagnostics.h"
#include "model/kernel_power.h"
#include "recording/byte_source.h"
#include "recording/kernel_power_library.h"

namespace joulemap::recording {

struct LoadedKernelLibrary {
  std::vector<KernelPower> powers;  // measured ones, sorted, one per GPU model and kernel key
  Diagnostics diagnostics;          // damage of the file
};

// Returns an empty library if the file does not exist. Fails if it is not a recording or needs a newer joulemap.
Result<LoadedKernelLibrary> load_kernel_library(const std::string& path);
// Reads from any byte source; `name` names it in messages.
Result<LoadedKernelLibrary> read_kernel_library(ByteSource& bytes, std::string_view name);

// Merges `findings` into the file, which keeps at most `max_entries` per GPU model. Creates the folder. Renames an
// unreadable file to FILE.damaged. Returns diagnostics of damaged and dropped entries. Waits at most a few seconds for
// other writers.
Result<Diagnostics> add_to_kernel_library(const std::string& path, std::vector<KernelPower> findings,
                                          std::size_t max_entries = kMaxKernelPowers);

}  // namespace joulemap::recording
