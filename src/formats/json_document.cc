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

constexpr std::size_t kMaxDepth = 64;  // the parser recurses at each level

// Builds the tree from RapidJSON's callbacks. A stack holds the open objects and arrays; the entry of an object also
// holds its current key.
class Builder : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Builder> {
 public:
  DocumentValue root;

  bool Null() { return put(DocumentValue{}); }
  bool Bool(bool value) { return put(DocumentValue{value}); }
  // Numbers come as text (kParseNumbersAsStringsFlag): RapidJSON's own conversion of "0e70" in full precision has
  // undefined behaviour (found by fuzz_experiment).
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    const char* const end = text + size;
    const auto is_read = [end](const std::from_chars_result& read) {
      return read.ec == std::errc() && read.ptr == end;
    };
    std::int64_t whole = 0;
    if (is_read(std::from_chars(text, end, whole))) return put(DocumentValue{whole});
    double real = 0;
    return is_read(std::from_chars(text, end, real)) && put(DocumentValue{real});
  }
  bool String(const char* text, rapidjson::SizeType size, bool) { return put(DocumentValue{std::string(text, size)}); }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    open_.back().key.assign(text, size);
    return true;
  }
  bool StartObject() { return open(DocumentValue{DocumentValue::Table{}}); }
  bool EndObject(rapidjson::SizeType) { return close(); }
  bool StartArray() { return open(DocumentValue{DocumentValue::Array{}}); }
  bool EndArray(rapidjson::SizeType) { return close(); }

 private:
  struct Open {
    DocumentValue value;
    std::string key;
  };

  bool open(DocumentValue value) {
    if (open_.size() >= kMaxDepth) return false;
    open_.push_back({std::move(value), {}});
    return true;
  }
  bool close() {
    DocumentValue value = std::move(open_.back().value);
    open_.pop_back();
    return put(std::move(value));
  }
  bool put(DocumentValue value) {
    if (open_.empty()) {
      root = std::move(value);
      return true;
    }
    Open& around = open_.back();
    if (auto* const members = std::get_if<DocumentValue::Table>(&around.value.content)) {
      members->push_back({around.key, std::move(value)});
    } else {
      std::get<DocumentValue::Array>(around.value.content).push_back(std::move(value));
    }
    return true;
  }

  std::vector<Open> open_;
};

}  // namespace

Result<DocumentValue> read_json(std::string_view text, std::string_view name) {
  Builder builder;
  rapidjson::MemoryStream stream(text.data(), text.size());
  rapidjson::Reader reader;
  reader.Parse<rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseNanAndInfFlag>(stream, builder);
  if (reader.HasParseError()) {
    const std::size_t offset = std::min(reader.GetErrorOffset(), text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n');
    return Error{ErrorCode::malformed,
                 fmt::format("{}:{}: {}", name, line, rapidjson::GetParseError_En(reader.GetParseErrorCode())), ""};
  }
  return std::move(builder.root);
}

}  // namespace joulemap::formats
