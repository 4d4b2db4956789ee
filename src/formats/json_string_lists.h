// SPDX-License-Identifier: Apache-2.0
//
// Reads a JSON object whose members are arrays of strings, {"a": ["b", "c"]}. Wraps RapidJSON's parser for small files.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace joulemap::formats {

using StringLists = std::map<std::string, std::vector<std::string>, std::less<>>;

// Returns nullopt for any other text.
std::optional<StringLists> read_string_lists(std::string_view text);

}  // namespace joulemap::formats
