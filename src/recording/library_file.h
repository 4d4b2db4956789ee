// SPDX-License-Identifier: Apache-2.0
//
// Where the kernel library is kept between runs: a recording that holds nothing but powers, so that it is written, checked
// and read like any other. It is replaced at once; several that add to it do so one after another.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/diagnostics.h"
#include "model/kernel_power.h"
#include "recording/byte_source.h"

namespace joulemap::recording {

struct LoadedLibrary {
  std::vector<KernelPower> powers;  // measured ones, sorted, each GPU and code once
  Diagnostics diagnostics;          // what of it is damaged
};

// An empty one when there is no such file yet. Fails where it is no library at all.
Result<LoadedLibrary> load_library(const std::string& path);
// The same from anything with bytes; `name` is what messages call it.
Result<LoadedLibrary> read_library(ByteSource& bytes, std::string_view name);

// Merges findings into what the file holds. Makes the folder. A file that cannot be read at all is put aside as
// FILE.damaged. What was damaged or dropped is told. Waits a few seconds for others at most.
Result<Diagnostics> add_to_library(const std::string& path, std::vector<KernelPower> findings,
                                   std::size_t most = kMostKernelPowers);

}  // namespace joulemap::recording
