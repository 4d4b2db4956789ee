// SPDX-License-Identifier: Apache-2.0
//
// What lies in the folder of a recording that is not joined yet.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/diagnostics.h"

namespace joulemap::recording {

inline constexpr std::string_view kPartSuffix = ".joule";
inline constexpr std::string_view kTracesFolder = "traces";    // of profilers of frameworks, until they are read
inline constexpr std::string_view kJoinedName = "joined.tmp";  // the joined file, until it is complete

// Paths of the files of the folder that end so, in the order of their names.
Result<std::vector<std::string>> list_files(const std::string& folder, std::string_view suffix);

struct ListedParts {
  std::vector<std::string> parts;
  std::vector<std::string> skipped;  // named like parts, but no regular files
};
Result<ListedParts> list_parts(const std::string& folder);

// Why a path cannot be a part: a FIFO, a socket, a device, a folder or a link in its place, none of which is opened.
std::optional<Error> part_fault(const std::string& path);

Diagnostic skipped_part(const Error& fault);

}  // namespace joulemap::recording
