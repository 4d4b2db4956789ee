// SPDX-License-Identifier: Apache-2.0
//
// What lies in the folder of a recording that is not joined yet.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/small_file.h"

namespace joulemap::recording {

inline constexpr std::string_view kPartSuffix = ".joule";

// Paths of the files of the folder that end so, in the order of their names.
inline Result<std::vector<std::string>> list_files(const std::string& folder, std::string_view suffix) {
  Result<std::vector<std::string>> names = list_directory(folder);
  if (!names) return names;
  std::vector<std::string> paths;
  for (const std::string& name : *names) {
    if (name.ends_with(suffix)) paths.push_back(folder + "/" + name);
  }
  return paths;
}

inline Result<std::vector<std::string>> list_parts(const std::string& folder) {
  return list_files(folder, kPartSuffix);
}

}  // namespace joulemap::recording
