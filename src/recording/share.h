// SPDX-License-Identifier: Apache-2.0
//
// A copy of a recording that does not show whose machine it was: what `joulemap share` makes. Host, boot, pids, folders,
// secrets in the command, the kernel's build and UUIDs of GPUs are replaced (shared_names.h); readings, times and what ran
// stay, and so does every number of a report. Bytes that belong to no whole chunk, and chunks that only a newer version
// understands, are left out: what they hold is not known.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace joulemap::recording {

struct ShareSummary {
  std::uint64_t bytes = 0;           // of the copy
  std::uint64_t chunks = 0;          // in it
  std::uint64_t dropped_chunks = 0;  // not understood
  std::uint64_t dropped_bytes = 0;   // of no whole chunk
};

// `to` must not exist. `user`: a name to leave out wherever it is a word of its own; may be empty.
Result<ShareSummary> share_recording(const std::string& from, const std::string& to, const std::string& user);

}  // namespace joulemap::recording
