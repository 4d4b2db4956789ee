// SPDX-License-Identifier: Apache-2.0
//
// What `joulemap share` prints: where the copy lies, what was left out, and what its reader still sees. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "model/diagnostics.h"

namespace joulemap::report {

struct SharedRecording {
  std::string file;
  std::uint64_t bytes = 0;
  std::uint64_t chunks = 0;
  std::uint64_t dropped_chunks = 0;  // that this version does not understand
  std::uint64_t dropped_bytes = 0;   // of no whole chunk
};

std::string share_text(const SharedRecording& shared);
std::string share_json(const SharedRecording& shared);

}  // namespace joulemap::report
