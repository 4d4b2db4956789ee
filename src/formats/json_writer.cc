// SPDX-License-Identifier: Apache-2.0
#include "formats/json_writer.h"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cmath>

#include "base/check.h"
#include "base/printable_text.h"
#include "base/text.h"

namespace joulemap::formats {

struct JsonWriter::State {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer{buffer};
};

JsonWriter::JsonWriter() : state_(std::make_unique<State>()) {}
JsonWriter::~JsonWriter() = default;
JsonWriter::JsonWriter(JsonWriter&&) noexcept = default;

JsonWriter& JsonWriter::begin_object() {
  state_->writer.StartObject();
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  state_->writer.EndObject();
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  state_->writer.StartArray();
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  state_->writer.EndArray();
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) { return value(name); }

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  state_->writer.Double(number);
  return *this;
}

JsonWriter& JsonWriter::value(std::int64_t number) {
  state_->writer.Int64(number);
  return *this;
}

JsonWriter& JsonWriter::value(std::uint64_t number) {
  state_->writer.Uint64(number);
  return *this;
}

JsonWriter& JsonWriter::value(bool truth) {
  state_->writer.Bool(truth);
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  const std::string valid_text = to_valid_utf8(text);
  state_->writer.String(valid_text.data(), static_cast<rapidjson::SizeType>(valid_text.size()));
  return *this;
}

JsonWriter& JsonWriter::null() {
  state_->writer.Null();
  return *this;
}

JsonWriter& JsonWriter::text_or_null(std::string_view name, std::string_view text) {
  key(name);
  return text.empty() ? null() : value(text);
}

std::string JsonWriter::text() && {
  JOULEMAP_CHECK(state_->writer.IsComplete(), "an object or array was left open");
  return escape_unsafe_json({state_->buffer.GetString(), state_->buffer.GetSize()});
}

}  // namespace joulemap::formats
