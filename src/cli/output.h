// SPDX-License-Identifier: Apache-2.0
//
// Where results go. The only place that writes to stdout, stderr or a file named by -o, and the one that
// notices when that fails: a full disk or a closed pipe must not look like success.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace joulemap::cli {

enum class Stream { out, error };

Status write_to(Stream stream, std::string_view text);

// Replaces the file. Done through a temporary one beside it, so that a failure leaves the old content.
Status write_to_file(const std::string& path, std::string_view text);

}  // namespace joulemap::cli
