// SPDX-License-Identifier: Apache-2.0
#include "formats/json_objects.h"

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>

namespace joulemap::formats {
namespace {

constexpr std::string_view kJsonWhitespace = " \t\r\n";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kTraceEventsKey = "\"traceEvents\"";
constexpr std::size_t kMaxObjectDepth = 6;  // objects at this level of nesting or deeper are skipped
constexpr std::size_t kMaxRepairedBytes = std::size_t{1}
                                          << 16;  // bytes; largest object with control characters to repair
// kParseIterativeFlag: nested brackets in a damaged file must not overflow the stack.
constexpr unsigned kRapidJsonParseFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseStopWhenDoneFlag |
                                          rapidjson::kParseNanAndInfFlag | rapidjson::kParseTrailingCommasFlag;

// Stores the members of one object in JsonFields. RapidJSON calls a method for each token.
class JsonFieldsHandler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, JsonFieldsHandler> {
 public:
  JsonFieldsHandler(JsonFields& fields, std::string_view text, const rapidjson::MemoryStream& stream)
      : fields_(fields), text_(text), stream_(stream) {}

  bool Default() { return true; }
  bool Int(int number) { return set_field(std::int64_t{number}); }
  bool Uint(unsigned number) { return set_field(std::int64_t{number}); }
  bool Int64(std::int64_t number) { return set_field(number); }
  bool Uint64(std::uint64_t number) {
    const bool fits = number <= static_cast<std::uint64_t>(INT64_MAX);
    return fits ? set_field(static_cast<std::int64_t>(number)) : set_field(static_cast<double>(number));
  }
  bool Double(double number) { return set_field(number); }
  bool String(const char* text, rapidjson::SizeType size, bool) { return set_field(std::string_view(text, size)); }

  bool Key(const char* text, rapidjson::SizeType size, bool) {
    if (is_value_stored()) field_path_.replace(prefix_length_, std::string::npos, text, size);
    return true;
  }
  bool StartObject() {
    if (is_value_stored()) {
      outer_prefix_lengths_.push_back(prefix_length_);
      if (outer_prefix_lengths_.size() > 1) field_path_ += '.';
      prefix_length_ = field_path_.size();
    } else {
      ++skipped_depth_;
    }
    return true;
  }
  bool EndObject(rapidjson::SizeType) {
    if (skipped_depth_ > 0) {
      --skipped_depth_;
    } else {
      prefix_length_ = outer_prefix_lengths_.back();
      outer_prefix_lengths_.pop_back();
    }
    return true;
  }
  // During StartArray() and EndArray(), RapidJSON's stream position is that of the bracket.
  bool StartArray() {
    if (is_value_stored()) array_begin_offset_ = stream_.Tell();
    ++skipped_depth_;
    return true;
  }
  bool EndArray(rapidjson::SizeType) {
    --skipped_depth_;
    if (is_value_stored())
      fields_.set_array(field_path_, text_.substr(array_begin_offset_, stream_.Tell() + 1 - array_begin_offset_));
    return true;
  }

 private:
  bool is_value_stored() const { return skipped_depth_ == 0 && outer_prefix_lengths_.size() < kMaxObjectDepth; }

  template <class T>
  bool set_field(T value) {
    if (is_value_stored()) fields_.set(field_path_, value);
    return true;
  }

  JsonFields& fields_;
  std::string_view text_;
  const rapidjson::MemoryStream& stream_;
  std::size_t array_begin_offset_ = 0;
  std::string field_path_;
  std::size_t prefix_length_ = 0;  // length of the part of field_path_ that belongs to the enclosing objects
  std::vector<std::size_t> outer_prefix_lengths_;  // prefixes of the open objects
  std::size_t skipped_depth_ = 0;                  // number of open arrays and objects that are skipped
};

class JsonObjectScan {
 public:
  JsonObjectScan(std::string_view text, const std::function<void(const JsonFields&)>& visitor)
      : text_(text), visit_(visitor) {}

  JsonObjectsResult scan_objects() {
    result_.has_array = find_first_array();
    while (result_.has_array && !result_.has_array_ended && position_ < text_.size()) {
      position_ = text_.find_first_not_of(" \t\r\n,", position_);
      if (position_ == std::string_view::npos) break;
      if (text_[position_] == '{' && read_object()) continue;
      const bool is_end = text_[position_] == ']';
      if (is_end && result_.damaged_count == 0) {
        result_.has_array_ended = true;
      } else if (const std::size_t next_position = find_next_object(position_);
                 next_position != std::string_view::npos) {
        // After an invalid object, a closing bracket may belong to an array within that object.
        if (!is_end) ++result_.damaged_count;
        position_ = next_position;
      } else {
        result_.has_array_ended = is_end;
        if (!is_end) ++result_.damaged_count;
        break;
      }
    }
    return result_;
  }

 private:
  bool find_first_array() {
    if (text_.starts_with(kByteOrderMark)) position_ = kByteOrderMark.size();
    skip_whitespace();
    if (position_ < text_.size() && text_[position_] == '{') {
      // "traceEvents" may also be a string value: only the key is followed by a colon and an array.
      std::size_t key = text_.find(kTraceEventsKey, position_);
      for (; key != std::string_view::npos; key = text_.find(kTraceEventsKey, key + 1)) {
        position_ = key + kTraceEventsKey.size();
        skip_whitespace();
        if (position_ >= text_.size() || text_[position_] != ':') continue;
        ++position_;
        skip_whitespace();
        if (position_ < text_.size() && text_[position_] == '[') break;
      }
      if (key == std::string_view::npos) return false;
    }
    return position_ < text_.size() && text_[position_++] == '[';
  }

  void skip_whitespace() { position_ = std::min(text_.find_first_not_of(kJsonWhitespace, position_), text_.size()); }

  bool read_object() {
    if (const std::size_t size = parse_object(text_.substr(position_)); size > 0) {
      position_ += size;
      return true;
    }
    repaired_text_ = text_.substr(position_, kMaxRepairedBytes);
    const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' '; };
    if (std::none_of(repaired_text_.begin(), repaired_text_.end(), is_control)) return false;
    std::replace_if(repaired_text_.begin(), repaired_text_.end(), is_control, ' ');
    const std::size_t size = parse_object(repaired_text_);
    position_ += size;
    return size > 0;
  }

  // Returns the size in bytes of the object at the start of the text; 0 if it is invalid.
  std::size_t parse_object(std::string_view text) {
    fields_.clear();
    rapidjson::MemoryStream stream(text.data(), text.size());
    JsonFieldsHandler handler(fields_, text, stream);
    if (json_reader_.Parse<kRapidJsonParseFlags>(stream, handler).IsError()) return 0;
    visit_(fields_);
    return stream.Tell();
  }

  // Position of the next object after `start_position`: of the { in },{" with any blanks between these; npos if there
  // is none.
  std::size_t find_next_object(std::size_t start_position) const {
    for (std::size_t object_position = text_.find('{', start_position + 1); object_position != std::string_view::npos;
         object_position = text_.find('{', object_position + 1)) {
      const std::size_t key = text_.find_first_not_of(kJsonWhitespace, object_position + 1);
      const std::size_t comma = text_.find_last_not_of(kJsonWhitespace, object_position - 1);
      if (key == std::string_view::npos) return key;
      if (text_[key] != '"' || comma == std::string_view::npos || comma == 0 || text_[comma] != ',') continue;
      const std::size_t end = text_.find_last_not_of(kJsonWhitespace, comma - 1);
      if (end != std::string_view::npos && text_[end] == '}') return object_position;
    }
    return std::string_view::npos;
  }

  std::string_view text_;
  const std::function<void(const JsonFields&)>& visit_;
  std::size_t position_ = 0;
  JsonObjectsResult result_;
  rapidjson::Reader json_reader_;
  JsonFields fields_;
  std::string repaired_text_;
};

}  // namespace

JsonFields::Field& JsonFields::reuse_field(std::string_view path, Kind kind) {
  if (field_count_ == fields_.size()) fields_.emplace_back();
  Field& field = fields_[field_count_++];
  field.path = path;
  field.kind = kind;
  return field;
}

void JsonFields::set(std::string_view path, std::int64_t value) { reuse_field(path, Kind::integer).integer = value; }
void JsonFields::set(std::string_view path, double value) { reuse_field(path, Kind::real).number = value; }
void JsonFields::set(std::string_view path, std::string_view value) { reuse_field(path, Kind::text).text = value; }

// Of several members with that path, returns the last, as most JSON readers do; nullptr if there is none.
const JsonFields::Field* JsonFields::find(std::string_view path) const {
  for (std::size_t i = field_count_; i > 0; --i) {
    if (fields_[i - 1].path == path) return &fields_[i - 1];
  }
  return nullptr;
}

void JsonFields::set_array(std::string_view path, std::string_view text) { reuse_field(path, Kind::array).text = text; }

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
  return field->kind == Kind::integer ? static_cast<double>(field->integer) : field->number;
}

JsonObjectsResult for_each_json_object(std::string_view text, const std::function<void(const JsonFields&)>& visitor) {
  return JsonObjectScan(text, visitor).scan_objects();
}

}  // namespace joulemap::formats
