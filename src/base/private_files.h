// SPDX-License-Identifier: Apache-2.0
//
// Files and folders that only their owner reads: recordings, pages, tables and outputs hold command lines, paths and names
// of a machine. A umask may take away more, never less. Who wants to share one says so: chmod, or joulemap share.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace joulemap {

inline constexpr mode_t kPrivateFile = 0600;
inline constexpr mode_t kPrivateFolder = 0700;

// The folder and those above it that are missing. One that is there already stays as it is.
Status make_private_folders(const std::string& path);

}  // namespace joulemap
