// SPDX-License-Identifier: Apache-2.0
#include "formats/json_string_lists.h"

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

namespace joulemap::formats {
namespace {

// Rejects everything but lists of strings in one object, so that nested input cannot make the parser recurse deeply.
class StringListsHandler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, StringListsHandler> {
 public:
  StringLists lists;

  bool Default() { return false; }
  bool StartObject() { return depth_++ == 0; }
  bool EndObject(rapidjson::SizeType) { return --depth_ == 0; }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    current_list_ = &lists[std::string(text, size)];
    return true;
  }
  bool StartArray() { return depth_++ == 1; }
  bool EndArray(rapidjson::SizeType) { return --depth_ == 1; }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    if (depth_ != 2) return false;
    current_list_->emplace_back(text, size);
    return true;
  }

 private:
  int depth_ = 0;
  std::vector<std::string>* current_list_ = nullptr;
};

}  // namespace

std::optional<StringLists> read_string_lists(std::string_view text) {
  StringListsHandler handler;
  rapidjson::MemoryStream stream(text.data(), text.size());
  rapidjson::Reader reader;
  reader.Parse<rapidjson::kParseValidateEncodingFlag>(stream, handler);
  if (reader.HasParseError()) return std::nullopt;
  return std::move(handler.lists);
}

}  // namespace joulemap::formats
