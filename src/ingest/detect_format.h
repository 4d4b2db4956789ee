// SPDX-License-Identifier: Apache-2.0
//
// Recognizes the format of a trace or power log by its name and its first bytes, so that users of `joulemap import`
// need not name it. Reads a small part of the file.
#pragma once

#include <string>

#include "base/result.h"

namespace joulemap::ingest {

// Returns the name of a format of trace_formats(), "cprofile", "nvidia-smi" or "csv". Fails if the file cannot be read
// or its format is not recognized.
Result<std::string> detect_format(const std::string& path);

}  // namespace joulemap::ingest
