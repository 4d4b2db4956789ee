// SPDX-License-Identifier: Apache-2.0
//
// Reads the file of a trace into memory, whole: for formats whose parts refer to each other from end to end. Any thread.
#pragma once

#include <string>

#include "base/result.h"

namespace joulemap::ingest {

Result<std::string> read_trace_file(const std::string& path);

}  // namespace joulemap::ingest
