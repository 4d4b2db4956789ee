// SPDX-License-Identifier: Apache-2.0
//
// Output of `joulemap share`: the path of the copy, what was removed, and what a reader can still see. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "model/diagnostics.h"

namespace joulemap::report {

struct SharedRecording {
  std::string file;
  std::uint64_t bytes = 0;
  std::uint64_t chunks = 0;
  std::uint64_t dropped_chunks = 0;  // chunk types unknown to this version
  std::uint64_t dropped_bytes = 0;   // bytes outside any complete chunk
};

std::string shared_recording_text(const SharedRecording& shared);
std::string shared_recording_json(const SharedRecording& shared);

}  // namespace joulemap::report
