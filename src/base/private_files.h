// SPDX-License-Identifier: Apache-2.0
//
// Files and folders that only their owner can read: recordings, pages, tables and outputs contain command lines, paths
// and names of a machine. A umask can remove permissions but never add any. Users share a file explicitly: chmod, or
// joulemap share.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace joulemap {

inline constexpr mode_t kPrivateFileMode = 0600;
inline constexpr mode_t kPrivateFolderMode = 0700;

// Creates the folder and its missing parents. Existing folders are unchanged.
Status make_private_folders(const std::string& path);

}  // namespace joulemap
