// SPDX-License-Identifier: Apache-2.0
#include "base/private_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/small_file.h"

namespace joulemap {

Status make_private_folders(const std::string& path) {
  for (std::size_t end = 0; end < path.size();) {
    end = std::min(path.find('/', end + 1), path.size());
    const std::string folder = path.substr(0, end);
    if (::mkdir(folder.c_str(), kPrivateFolderMode) == 0 || errno == EEXIST) continue;
    const int failure = errno;
    struct stat status {};  // a read-only file system also refuses to create folders that exist
    if (::stat(folder.c_str(), &status) != 0) return system_error("create folder", folder, failure);
  }
  struct stat status {};
  if (!path.empty() && ::stat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode)) {
    return system_error("create folder", path, ENOTDIR);
  }
  return Done{};
}

}  // namespace joulemap
