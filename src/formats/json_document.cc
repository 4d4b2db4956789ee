// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <limits>

#include "formats/document.h"

namespace joulemap::formats {
namespace {

constexpr std::size_t kMostDepth = 64;  // the parser calls itself at each level

// Values that are not complete yet lie on a stack; an object's key waits beside it.
class Builder : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Builder> {
 public:
  DocumentValue root;

  bool Null() { return put(DocumentValue{}); }
  bool Bool(bool value) { return put(DocumentValue{value}); }
  bool Int(int value) { return put(DocumentValue{static_cast<std::int64_t>(value)}); }
  bool Uint(unsigned value) { return put(DocumentValue{static_cast<std::int64_t>(value)}); }
  bool Int64(std::int64_t value) { return put(DocumentValue{value}); }
  bool Uint64(std::uint64_t value) {
    const bool fits = value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return put(fits ? DocumentValue{static_cast<std::int64_t>(value)} : DocumentValue{static_cast<double>(value)});
  }
  bool Double(double value) { return put(DocumentValue{value}); }
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
    if (open_.size() >= kMostDepth) return false;
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
  reader.Parse<rapidjson::kParseFullPrecisionFlag | rapidjson::kParseNanAndInfFlag>(stream, builder);
  if (reader.HasParseError()) {
    const std::size_t offset = std::min(reader.GetErrorOffset(), text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n');
    return Error{ErrorCode::malformed,
                 fmt::format("{}:{}: {}", name, line, rapidjson::GetParseError_En(reader.GetParseErrorCode())), ""};
  }
  return std::move(builder.root);
}

}  // namespace joulemap::formats
