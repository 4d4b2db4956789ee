// SPDX-License-Identifier: Apache-2.0
//
// Recognizes the format of a trace or power log by its name and its first bytes, so that `joulemap import` needs no
// format. Reads a small part of the file.
#pragma once

#include <string>

#include "base/result.h"

namespace joulemap::ingest {

// The name of a format of trace_formats(), "nvidia-smi" or "csv". The Error says what the file looks like.
Result<std::string> detect_format(const std::string& path);

}  // namespace joulemap::ingest
