// SPDX-License-Identifier: Apache-2.0
//
// Output of `joulemap share`: path of the anonymized copy, what was replaced, and what the copy still contains. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "model/diagnostics.h"

namespace joulemap::report {

struct SharedRecording {
  std::string output_file;
  std::uint64_t file_bytes = 0;
  std::uint64_t chunk_count = 0;
  std::uint64_t dropped_chunk_count = 0;  // chunks of a type that this version does not know
  std::uint64_t dropped_bytes = 0;        // bytes that belong to no complete chunk
};

std::string anonymized_copy_text(const SharedRecording& shared);
std::string shared_recording_json(const SharedRecording& shared);

}  // namespace joulemap::report
