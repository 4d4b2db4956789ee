// SPDX-License-Identifier: Apache-2.0
#include "formats/json_string_lists.h"

#include <rapidjson/document.h>

namespace joulemap::formats {

std::optional<StringLists> read_string_lists(std::string_view text) {
  rapidjson::Document document;
  // Iterative: a file of a million brackets must not exhaust the stack.
  document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(text.data(), text.size());
  if (document.HasParseError() || !document.IsObject()) return std::nullopt;
  StringLists lists;
  for (const auto& member : document.GetObject()) {
    if (!member.value.IsArray()) return std::nullopt;
    std::vector<std::string>& list = lists[std::string(member.name.GetString(), member.name.GetStringLength())];
    for (const auto& item : member.value.GetArray()) {
      if (!item.IsString()) return std::nullopt;
      list.emplace_back(item.GetString(), item.GetStringLength());
    }
  }
  return lists;
}

}  // namespace joulemap::formats
