// SPDX-License-Identifier: Apache-2.0
//
// Writes an anonymized copy of a recording, for `joulemap share`. It replaces host, boot ID, PIDs, folders, secrets in
// the command, the kernel build and GPU UUIDs (anonymizer.h). Readings, times and activity are kept, and with them
// every number of a report. Bytes outside of whole chunks, and chunks that only a newer version can decode, are
// dropped, because their content is unknown.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace joulemap::recording {

struct AnonymizedCopySummary {
  std::uint64_t bytes = 0;           // size of the copy
  std::uint64_t chunks = 0;          // chunks in the copy
  std::uint64_t dropped_chunks = 0;  // chunks that cannot be decoded
  std::uint64_t dropped_bytes = 0;   // bytes outside of whole chunks
};

// Fails if `copy_path` exists. `user`: a name to replace wherever it is a whole word; may be empty.
Result<AnonymizedCopySummary> write_anonymized_copy(const std::string& source_path, const std::string& copy_path,
                                                    const std::string& user);

}  // namespace joulemap::recording
