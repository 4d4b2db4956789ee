// SPDX-License-Identifier: Apache-2.0
//
// Lists the files in the folder of a recording that is not yet joined.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/diagnostics.h"

namespace joulemap::recording {

inline constexpr std::string_view kPartSuffix = ".joule";
inline constexpr std::string_view kTracesFolderName = "traces";            // of framework profilers, until imported
inline constexpr std::string_view kUnfinishedJoinFileName = "joined.tmp";  // the joined file until it is complete

// Paths of the files in the folder that end with `suffix`, sorted by name.
Result<std::vector<std::string>> list_files(const std::string& folder, std::string_view suffix);

struct ListedParts {
  std::vector<std::string> parts;
  std::vector<std::string> skipped_names;  // named like parts, but not regular files
};
Result<ListedParts> list_parts(const std::string& folder);

// Why a path cannot be a part: it is a FIFO, a socket, a device, a folder or a link. nullopt for a regular file. Never
// opens it.
std::optional<Error> check_part_file(const std::string& path);

Diagnostic skipped_part_diagnostic(const Error& fault);

}  // namespace joulemap::recording
