// SPDX-License-Identifier: Apache-2.0
#include "formats/json_objects.h"

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <vector>

namespace joulemap::formats {
namespace {

// What RapidJSON calls for each token. Depth 0 is outside, 1 the array, 2 an object of it.
class Handler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Handler> {
 public:
  explicit Handler(const std::function<void(const JsonFields&)>& visit) : visit_(visit) {}

  bool Default() { return true; }
  bool Int(int number) { return set(std::int64_t{number}); }
  bool Uint(unsigned number) { return set(std::int64_t{number}); }
  bool Int64(std::int64_t number) { return set(number); }
  bool Double(double number) { return set(number); }
  bool String(const char* text, rapidjson::SizeType size, bool) { return set(std::string(text, size)); }

  bool Key(const char* text, rapidjson::SizeType size, bool) {
    key_.assign(text, size);
    return true;
  }
  bool StartObject() {
    if (arrays_ == 1) {
      prefix_ends_.push_back(prefix_.size());
      if (prefix_ends_.size() > 1) prefix_ += key_ + ".";
    } else {
      prefix_ends_.push_back(prefix_.size());
    }
    return true;
  }
  bool EndObject(rapidjson::SizeType) {
    prefix_.resize(prefix_ends_.back());
    prefix_ends_.pop_back();
    if (arrays_ == 1 && prefix_ends_.empty()) {
      visit_(fields_);
      fields_.clear();
    }
    return true;
  }
  bool StartArray() {
    ++arrays_;
    return true;
  }
  bool EndArray(rapidjson::SizeType) {
    --arrays_;
    return true;
  }

 private:
  template <class T>
  bool set(T value) {
    if (arrays_ == 1 && !prefix_ends_.empty()) fields_.set(prefix_ + key_, std::move(value));
    return true;
  }

  const std::function<void(const JsonFields&)>& visit_;
  JsonFields fields_;
  std::string key_;
  std::string prefix_;
  std::vector<std::size_t> prefix_ends_;  // of the objects that are open
  int arrays_ = 0;
};

}  // namespace

std::string_view JsonFields::text(std::string_view path) const {
  const auto known = fields_.find(path);
  const auto* const held = known == fields_.end() ? nullptr : std::get_if<std::string>(&known->second);
  return held == nullptr ? std::string_view() : std::string_view(*held);
}

std::optional<std::int64_t> JsonFields::integer(std::string_view path) const {
  const auto known = fields_.find(path);
  const auto* const held = known == fields_.end() ? nullptr : std::get_if<std::int64_t>(&known->second);
  return held == nullptr ? std::nullopt : std::optional(*held);
}

// Iterative: brackets in a damaged file must not use up the stack.
bool for_each_json_object(std::string_view text, const std::function<void(const JsonFields&)>& visit) {
  rapidjson::MemoryStream stream(text.data(), text.size());
  rapidjson::Reader reader;
  Handler handler(visit);
  return !reader.Parse<rapidjson::kParseIterativeFlag>(stream, handler).IsError();
}

}  // namespace joulemap::formats
