// SPDX-License-Identifier: Apache-2.0
#include "formats/document_writer.h"

#include "formats/json_writer.h"

namespace joulemap::formats {
namespace {

// Recursive: read_json() and read_toml() limit the depth.
void write_value(JsonWriter& json, const DocumentValue& value) {
  if (const DocumentValue::Table* const table = value.table()) {
    json.begin_object();
    for (const DocumentMember& member : *table) write_value(json.key(member.key), member.value);
    json.end_object();
  } else if (const DocumentValue::Array* const array = value.array()) {
    json.begin_array();
    for (const DocumentValue& element : *array) write_value(json, element);
    json.end_array();
  } else if (const auto integer = value.integer()) {
    json.value(*integer);
  } else if (const auto number = value.number()) {
    json.value(*number);
  } else if (const auto text = value.text()) {
    json.value(*text);
  } else {
    json.value(value.boolean());
  }
}

}  // namespace

std::string json_text(const DocumentValue& value) {
  JsonWriter json;
  write_value(json, value);
  return std::move(json).text();
}

}  // namespace joulemap::formats
