// SPDX-License-Identifier: Apache-2.0
#include "ingest/kineto/trace_metadata.h"

#include "formats/json_cursor.h"
#include "ingest/kineto/block_source.h"

namespace joulemap::ingest::kineto {
namespace {

using formats::JsonCursor;

constexpr std::string_view kBaseTimeKey = "baseTimeNanoseconds";

std::string unescape(const formats::JsonText& text) {
  std::string out;
  formats::unescape_json(text.raw, out);
  return out;
}

// Returns a string, or the text of a number or word; nullopt for objects, arrays and invalid text.
std::optional<std::string> read_scalar(JsonCursor& json) {
  const char first_character = json.peek();
  if (first_character == '"') return unescape(json.text());
  const char* const begin = json.at();
  json.skip();
  if (first_character == '{' || first_character == '[' || json.failed()) return std::nullopt;
  return std::string(begin, json.at());
}

// Reads the GPUs, [{"id": 0, "name": "NVIDIA H200", ...}], into environment facts: gpu0 is NVIDIA H200.
void read_device_properties(JsonCursor& json, TraceMetadata& metadata) {
  if (json.peek() != '[') return json.skip();
  json.enter_array();
  while (json.next_element()) {
    if (json.peek() != '{') {
      json.skip();
      continue;
    }
    std::int64_t id = -1;
    std::string name;
    json.enter_object();
    for (std::string_view key; json.next_member(key);) {
      if (key == "id") {
        json.integer(id);
      } else if (key == "name" && json.peek() == '"') {
        name = unescape(json.text());
      } else {
        json.skip();
      }
    }
    if (id >= 0 && !name.empty()) metadata.environment.push_back({"gpu" + std::to_string(id), name});
  }
}

void read_distributed_info(JsonCursor& json, TraceMetadata& metadata) {
  if (json.peek() != '{') return json.skip();
  json.enter_object();
  for (std::string_view key; json.next_member(key);) {
    if (key == "rank") {
      std::int64_t rank = 0;
      if (json.integer(rank)) metadata.rank = rank;
    } else if (key == "backend" || key == "world_size" || key == "nccl_version") {
      const std::string name(key);
      if (const std::optional<std::string> value = read_scalar(json)) metadata.environment.push_back({name, *value});
    } else {
      json.skip();
    }
  }
}

void read_metadata_member(JsonCursor& json, std::string_view key, TraceMetadata& metadata) {
  if (key == "deviceProperties") return read_device_properties(json, metadata);
  if (key == "distributedInfo") return read_distributed_info(json, metadata);
  const bool is_wanted = key == kBaseTimeKey || key == "host_name" || key.ends_with("_version");
  const std::optional<std::string> value = is_wanted ? read_scalar(json) : std::nullopt;
  if (!is_wanted) return json.skip();
  if (!value || key == kBaseTimeKey) return;
  if (key == "host_name") {
    metadata.host = *value;
  } else {
    metadata.environment.push_back({std::string(key), *value});
  }
}

// Finds the base time by pattern, also in damaged text: without it all times would be wrong by decades.
void find_base_time_by_pattern(std::string_view text, TraceMetadata& metadata) {
  const std::string quoted_key = "\"" + std::string(kBaseTimeKey) + "\"";
  const std::size_t key_position = text.rfind(quoted_key);
  if (key_position == std::string_view::npos) return;
  JsonCursor json(text.data() + key_position + quoted_key.size(), text.data() + text.size());
  if (json.peek() != ':') return;
  JsonCursor number(json.at() + 1, text.data() + text.size());
  std::int64_t base_time_ns = 0;
  if (number.peek() == '\0' || !number.integer(base_time_ns) || base_time_ns < 0) return;
  metadata.base_time_ns = base_time_ns;
}

}  // namespace

void read_metadata(std::string_view text, TraceMetadata& metadata) {
  BlockBuffer padded_buffer;
  padded_buffer.assign("{");
  const std::size_t content_offset = text.find_first_not_of("\xEF\xBB\xBF \t\r\n{,");
  if (content_offset == std::string_view::npos) return;
  padded_buffer.append(text.substr(content_offset));
  const std::string_view members = padded_buffer.contents();
  JsonCursor json(members.data(), members.data() + members.size());
  json.enter_object();
  for (std::string_view key; json.next_member(key) && key != "traceEvents";) read_metadata_member(json, key, metadata);
  metadata.is_damaged |= json.failed();
  find_base_time_by_pattern(members, metadata);
}

}  // namespace joulemap::ingest::kineto
