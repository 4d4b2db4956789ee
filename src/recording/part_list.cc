// SPDX-License-Identifier: Apache-2.0
#include "recording/part_list.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/small_file.h"

namespace joulemap::recording {
namespace {

std::string_view file_type_name(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "a folder";
    case S_IFIFO:
      return "a FIFO";
    case S_IFSOCK:
      return "a socket";
    case S_IFLNK:
      return "a symbolic link";
    default:
      return "a device";
  }
}

}  // namespace

Result<std::vector<std::string>> list_files(const std::string& folder, std::string_view suffix) {
  Result<std::vector<std::string>> names = list_directory(folder);
  if (!names) return names;
  std::vector<std::string> paths;
  for (const std::string& name : *names) {
    if (name.ends_with(suffix)) paths.push_back(folder + "/" + name);
  }
  return paths;
}

Result<ListedParts> list_parts(const std::string& folder) {
  Result<std::vector<std::string>> paths = list_files(folder, kPartSuffix);
  if (!paths) return std::move(paths).error();
  ListedParts listed;
  for (std::string& path : *paths)
    (check_part_file(path) ? listed.skipped_names : listed.parts).push_back(std::move(path));
  return listed;
}

std::optional<Error> check_part_file(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return system_error("stat", path, errno);
  if (S_ISREG(status.st_mode)) return std::nullopt;
  return Error{ErrorCode::usage,
               fmt::format("{} is {}, not a part of a recording", path, file_type_name(status.st_mode)), "move it"};
}

Diagnostic skipped_part_diagnostic(const Error& fault) {
  return {"recording_part_skipped", 1, fault.message + "; it is skipped", fault.remedy};
}

}  // namespace joulemap::recording
