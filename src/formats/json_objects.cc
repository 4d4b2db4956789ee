// SPDX-License-Identifier: Apache-2.0
#include "formats/json_objects.h"

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>

namespace joulemap::formats {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kEvents = "\"traceEvents\"";
constexpr std::size_t kDeepest = 6;                         // objects at this level of nesting or deeper are skipped
constexpr std::size_t kMaxRepaired = std::size_t{1} << 16;  // bytes; largest object with control characters to repair
// kParseIterativeFlag: nested brackets in a damaged file must not overflow the stack.
constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseStopWhenDoneFlag |
                            rapidjson::kParseNanAndInfFlag | rapidjson::kParseTrailingCommasFlag;

// Stores the members of one object in JsonFields. RapidJSON calls a method for each token.
class Handler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Handler> {
 public:
  Handler(JsonFields& fields, std::string_view text, const rapidjson::MemoryStream& stream)
      : fields_(fields), text_(text), stream_(stream) {}

  bool Default() { return true; }
  bool Int(int number) { return set(std::int64_t{number}); }
  bool Uint(unsigned number) { return set(std::int64_t{number}); }
  bool Int64(std::int64_t number) { return set(number); }
  bool Uint64(std::uint64_t number) {
    const bool fits = number <= static_cast<std::uint64_t>(INT64_MAX);
    return fits ? set(static_cast<std::int64_t>(number)) : set(static_cast<double>(number));
  }
  bool Double(double number) { return set(number); }
  bool String(const char* text, rapidjson::SizeType size, bool) { return set(std::string_view(text, size)); }

  bool Key(const char* text, rapidjson::SizeType size, bool) {
    if (is_kept()) path_.replace(prefix_, std::string::npos, text, size);
    return true;
  }
  bool StartObject() {
    if (is_kept()) {
      prefixes_.push_back(prefix_);
      if (prefixes_.size() > 1) path_ += '.';
      prefix_ = path_.size();
    } else {
      ++skipped_;
    }
    return true;
  }
  bool EndObject(rapidjson::SizeType) {
    if (skipped_ > 0) {
      --skipped_;
    } else {
      prefix_ = prefixes_.back();
      prefixes_.pop_back();
    }
    return true;
  }
  // During StartArray() and EndArray(), RapidJSON's stream position is that of the bracket.
  bool StartArray() {
    if (is_kept()) array_begin_ = stream_.Tell();
    ++skipped_;
    return true;
  }
  bool EndArray(rapidjson::SizeType) {
    --skipped_;
    if (is_kept()) fields_.set_array(path_, text_.substr(array_begin_, stream_.Tell() + 1 - array_begin_));
    return true;
  }

 private:
  bool is_kept() const { return skipped_ == 0 && prefixes_.size() < kDeepest; }

  template <class T>
  bool set(T value) {
    if (is_kept()) fields_.set(path_, value);
    return true;
  }

  JsonFields& fields_;
  std::string_view text_;
  const rapidjson::MemoryStream& stream_;
  std::size_t array_begin_ = 0;
  std::string path_;
  std::size_t prefix_ = 0;             // length of the part of path_ that belongs to the enclosing objects
  std::vector<std::size_t> prefixes_;  // prefixes of the open objects
  std::size_t skipped_ = 0;            // number of open arrays and objects that are skipped
};

class Scan {
 public:
  Scan(std::string_view text, const std::function<void(const JsonFields&)>& visit) : text_(text), visit_(visit) {}

  JsonObjectsResult run() {
    result_.found = find_array();
    while (result_.found && !result_.ended && at_ < text_.size()) {
      at_ = text_.find_first_not_of(" \t\r\n,", at_);
      if (at_ == std::string_view::npos) break;
      if (text_[at_] == '{' && read_object()) continue;
      const bool is_end = text_[at_] == ']';
      if (is_end && result_.damaged == 0) {
        result_.ended = true;
      } else if (const std::size_t next = next_object(at_); next != std::string_view::npos) {
        // After an invalid object, a closing bracket may belong to an array within that object.
        if (!is_end) ++result_.damaged;
        at_ = next;
      } else {
        result_.ended = is_end;
        if (!is_end) ++result_.damaged;
        break;
      }
    }
    return result_;
  }

 private:
  bool find_array() {
    if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '{') {
      // "traceEvents" may also be a string value: only the key is followed by a colon and an array.
      std::size_t key = text_.find(kEvents, at_);
      for (; key != std::string_view::npos; key = text_.find(kEvents, key + 1)) {
        at_ = key + kEvents.size();
        skip_blanks();
        if (at_ >= text_.size() || text_[at_] != ':') continue;
        ++at_;
        skip_blanks();
        if (at_ < text_.size() && text_[at_] == '[') break;
      }
      if (key == std::string_view::npos) return false;
    }
    return at_ < text_.size() && text_[at_++] == '[';
  }

  void skip_blanks() { at_ = std::min(text_.find_first_not_of(kBlanks, at_), text_.size()); }

  bool read_object() {
    if (const std::size_t size = parse(text_.substr(at_)); size > 0) {
      at_ += size;
      return true;
    }
    repaired_ = text_.substr(at_, kMaxRepaired);
    const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' '; };
    if (std::none_of(repaired_.begin(), repaired_.end(), is_control)) return false;
    std::replace_if(repaired_.begin(), repaired_.end(), is_control, ' ');
    const std::size_t size = parse(repaired_);
    at_ += size;
    return size > 0;
  }

  // Returns the size in bytes of the object at the start of the text; 0 if it is invalid.
  std::size_t parse(std::string_view text) {
    fields_.clear();
    rapidjson::MemoryStream stream(text.data(), text.size());
    Handler handler(fields_, text, stream);
    if (reader_.Parse<kFlags>(stream, handler).IsError()) return 0;
    visit_(fields_);
    return stream.Tell();
  }

  // Position of the next object after `from`: of the { in },{" with any blanks between these; npos if there is none.
  std::size_t next_object(std::size_t from) const {
    for (std::size_t at = text_.find('{', from + 1); at != std::string_view::npos; at = text_.find('{', at + 1)) {
      const std::size_t key = text_.find_first_not_of(kBlanks, at + 1);
      const std::size_t comma = text_.find_last_not_of(kBlanks, at - 1);
      if (key == std::string_view::npos) return key;
      if (text_[key] != '"' || comma == std::string_view::npos || comma == 0 || text_[comma] != ',') continue;
      const std::size_t end = text_.find_last_not_of(kBlanks, comma - 1);
      if (end != std::string_view::npos && text_[end] == '}') return at;
    }
    return std::string_view::npos;
  }

  std::string_view text_;
  const std::function<void(const JsonFields&)>& visit_;
  std::size_t at_ = 0;
  JsonObjectsResult result_;
  rapidjson::Reader reader_;
  JsonFields fields_;
  std::string repaired_;
};

}  // namespace

JsonFields::Field& JsonFields::next(std::string_view path, Kind kind) {
  if (size_ == fields_.size()) fields_.emplace_back();
  Field& field = fields_[size_++];
  field.path = path;
  field.kind = kind;
  return field;
}

void JsonFields::set(std::string_view path, std::int64_t value) { next(path, Kind::integer).integer = value; }
void JsonFields::set(std::string_view path, double value) { next(path, Kind::real).real = value; }
void JsonFields::set(std::string_view path, std::string_view value) { next(path, Kind::text).text = value; }

// Of several members with that path, returns the last, as most JSON readers do; nullptr if there is none.
const JsonFields::Field* JsonFields::find(std::string_view path) const {
  for (std::size_t i = size_; i > 0; --i) {
    if (fields_[i - 1].path == path) return &fields_[i - 1];
  }
  return nullptr;
}

void JsonFields::set_array(std::string_view path, std::string_view text) { next(path, Kind::array).text = text; }

std::string_view JsonFields::array(std::string_view path) const {
  const Field* const field = find(path);
  return field == nullptr || field->kind != Kind::array ? std::string_view() : std::string_view(field->text);
}

std::string_view JsonFields::text(std::string_view path) const {
  const Field* const field = find(path);
  return field == nullptr || field->kind != Kind::text ? std::string_view() : std::string_view(field->text);
}

std::optional<std::int64_t> JsonFields::integer(std::string_view path) const {
  const Field* const field = find(path);
  return field == nullptr || field->kind != Kind::integer ? std::nullopt : std::optional(field->integer);
}

std::optional<double> JsonFields::number(std::string_view path) const {
  const Field* const field = find(path);
  if (field == nullptr || field->kind == Kind::text || field->kind == Kind::array) return std::nullopt;
  return field->kind == Kind::integer ? static_cast<double>(field->integer) : field->real;
}

JsonObjectsResult for_each_json_object(std::string_view text, const std::function<void(const JsonFields&)>& visit) {
  return Scan(text, visit).run();
}

}  // namespace joulemap::formats
