// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <charconv>

#include "formats/document.h"

namespace joulemap::formats {
namespace {

constexpr std::size_t kMaxNestingDepth = 64;  // the parser recurses at each level

// Builds the tree from RapidJSON's callbacks. A stack holds the open objects and arrays; the entry of an object also
// holds its current key.
class DocumentBuilder : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, DocumentBuilder> {
 public:
  DocumentValue root_value;

  bool Null() { return add_value(DocumentValue{}); }
  bool Bool(bool value) { return add_value(DocumentValue{value}); }
  // Numbers come as text (kParseNumbersAsStringsFlag): RapidJSON's own conversion of "0e70" in full precision has
  // undefined behaviour (found by fuzz_experiment).
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    const char* const end = text + size;
    const auto is_fully_parsed = [end](const std::from_chars_result& parse_result) {
      return parse_result.ec == std::errc() && parse_result.ptr == end;
    };
    std::int64_t integer_value = 0;
    if (is_fully_parsed(std::from_chars(text, end, integer_value))) return add_value(DocumentValue{integer_value});
    double float_value = 0;
    return is_fully_parsed(std::from_chars(text, end, float_value)) && add_value(DocumentValue{float_value});
  }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    return add_value(DocumentValue{std::string(text, size)});
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    open_containers_.back().current_key.assign(text, size);
    return true;
  }
  bool StartObject() { return open_container(DocumentValue{DocumentValue::Table{}}); }
  bool EndObject(rapidjson::SizeType) { return close_container(); }
  bool StartArray() { return open_container(DocumentValue{DocumentValue::Array{}}); }
  bool EndArray(rapidjson::SizeType) { return close_container(); }

 private:
  struct OpenContainer {
    DocumentValue value;
    std::string current_key;
  };

  bool open_container(DocumentValue value) {
    if (open_containers_.size() >= kMaxNestingDepth) return false;
    open_containers_.push_back({std::move(value), {}});
    return true;
  }
  bool close_container() {
    DocumentValue value = std::move(open_containers_.back().value);
    open_containers_.pop_back();
    return add_value(std::move(value));
  }
  bool add_value(DocumentValue value) {
    if (open_containers_.empty()) {
      root_value = std::move(value);
      return true;
    }
    OpenContainer& parent_container = open_containers_.back();
    if (auto* const members = std::get_if<DocumentValue::Table>(&parent_container.value.content)) {
      members->push_back({parent_container.current_key, std::move(value)});
    } else {
      std::get<DocumentValue::Array>(parent_container.value.content).push_back(std::move(value));
    }
    return true;
  }

  std::vector<OpenContainer> open_containers_;
};

}  // namespace

Result<DocumentValue> read_json(std::string_view text, std::string_view name) {
  DocumentBuilder builder;
  rapidjson::MemoryStream stream(text.data(), text.size());
  rapidjson::Reader reader;
  reader.Parse<rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseNanAndInfFlag>(stream, builder);
  if (reader.HasParseError()) {
    const std::size_t offset = std::min(reader.GetErrorOffset(), text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n');
    return Error{ErrorCode::malformed,
                 fmt::format("{}:{}: {}", name, line, rapidjson::GetParseError_En(reader.GetParseErrorCode())), ""};
  }
  return std::move(builder.root_value);
}

}  // namespace joulemap::formats
