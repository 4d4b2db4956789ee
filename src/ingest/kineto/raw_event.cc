// SPDX-License-Identifier: Apache-2.0
#include "ingest/kineto/raw_event.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

namespace joulemap::ingest::kineto {
namespace {

using formats::JsonCursor;

constexpr std::pair<std::string_view, Category> kKnownCategories[] = {
    {"ac2g", Category::ignored},
    {"fwdbwd", Category::ignored},
    {"user_annotation", Category::annotation},
    {"gpu_memcpy", Category::copy},
    {"gpu_memset", Category::fill},
    {"cuda_driver", Category::api},
    {"gpu_user_annotation", Category::ignored},
    {"cpu_instant_event", Category::ignored},
    {"overhead", Category::ignored},
    {"cuda_sync", Category::ignored},
    {"cuda_event", Category::ignored},
    {"trace", Category::ignored},
    {"async_cpu_to_gpu", Category::ignored},
    {"async_gpu", Category::ignored},
    {"cuda_profiler_range", Category::ignored},
    {"collective_comm", Category::ignored},
    {"external_correlation", Category::ignored},
    // Categories of PyTorch 1.8 to 1.11, also written with capitals.
    {"operator", Category::op},
    {"runtime", Category::api},
    {"memcpy", Category::copy},
    {"memset", Category::fill},
    {"python", Category::python},
    {"memory", Category::ignored},
};

// text == word. With a length known at compile time, this is one or two instructions.
template <std::size_t N>
bool equals_word(std::string_view text, const char (&word)[N]) {
  return text.size() == N - 1 && std::memcmp(text.data(), word, N - 1) == 0;
}

Category find_known_category(std::string_view text) {
  if (equals_word(text, "cpu_op")) return Category::op;  // the most frequent category
  if (equals_word(text, "cuda_runtime")) return Category::api;
  if (equals_word(text, "python_function")) return Category::python;
  if (equals_word(text, "kernel")) return Category::kernel;
  for (const auto& [name, category] : kKnownCategories) {
    if (name == text) return category;
  }
  return Category::unknown;
}

bool has_wanted_args(const RawEvent& event) {
  switch (event.category) {
    case Category::python:
    case Category::ignored:
    case Category::unknown:
      return false;
    default:
      return true;
  }
}

// Reads the three numbers of grid or block.
JOULEMAP_INLINE void read_launch_extent(JsonCursor& json, std::array<std::uint32_t, 3>& extent) {
  if (json.peek() != '[') return json.skip();
  json.enter_array();
  for (std::size_t i = 0; json.next_element(); ++i) {
    std::int64_t value = 0;
    if (json.integer(value) && i < extent.size() && value >= 0 && value <= std::numeric_limits<std::uint32_t>::max()) {
      extent[i] = static_cast<std::uint32_t>(value);
    }
  }
}

// Returns the member of `event` for the numeric argument `key`; null if the argument is not needed.
std::int64_t* read_number_argument(std::string_view key, RawEvent& event) {
  switch (key.size()) {
    case 5:
      return equals_word(key, "bytes") ? &event.bytes : nullptr;
    case 6:
      if (equals_word(key, "device")) return &event.device;
      return equals_word(key, "stream") ? &event.stream : nullptr;
    case 7:
      return equals_word(key, "context") ? &event.context : nullptr;
    case 11:
      if (equals_word(key, "correlation")) return &event.correlation;
      return equals_word(key, "External id") || equals_word(key, "external id") ? &event.external_id : nullptr;
    case 13:
      return equals_word(key, "Fwd thread id") ? &event.forward_thread : nullptr;
    case 15:
      return equals_word(key, "Sequence number") ? &event.sequence_number : nullptr;
    default:
      return nullptr;
  }
}

// Returns the source text of a list; empty for another value.
JOULEMAP_INLINE std::string_view read_json_list_text(JsonCursor& json) {
  const bool is_list = json.peek() == '[';
  const char* const begin = json.at();
  json.skip();
  return is_list && !json.failed() ? std::string_view(begin, json.at()) : std::string_view();
}

JOULEMAP_INLINE void read_arguments(JsonCursor& json, RawEvent& event) {
  if (!has_wanted_args(event) || json.peek() != '{') return json.skip();
  json.enter_object();
  for (std::string_view key; json.next_member(key);) {
    if (std::int64_t* const number = read_number_argument(key, event)) {
      json.integer(*number);  // stream ids in AMD's runtime calls are strings ("0x0") and not needed
    } else if (equals_word(key, "grid") || equals_word(key, "block")) {
      read_launch_extent(json, key.size() == 4 ? event.grid_size : event.block_size);
    } else if (equals_word(key, "name") || equals_word(key, "Module Hierarchy")) {
      if (json.peek() != '"') {
        json.skip();
        continue;
      }
      (key.size() == 4 ? event.thread_name : event.module_hierarchy) = json.text();
    } else if (equals_word(key, "Input Dims") || equals_word(key, "Input type") || equals_word(key, "Input dims")) {
      (key[6] == 't' ? event.tensor_types : event.tensor_shapes) = read_json_list_text(json);
    } else {
      json.skip();
    }
  }
}

JOULEMAP_INLINE void read_track(JsonCursor& json, TrackId& track) {
  track = {};
  if (json.peek() != '"') {
    json.integer(track.number);
    return;
  }
  const std::string_view track_name = json.text().raw;
  const auto [end, error] = std::from_chars(track_name.data(), track_name.data() + track_name.size(), track.number);
  if (error != std::errc() || end != track_name.data() + track_name.size())
    track = {.number = 0, .track_name = track_name};
}

JOULEMAP_INLINE void read_phase(JsonCursor& json, RawEvent& event) {
  if (json.peek() != '"') return json.skip();
  const std::string_view phase = json.text().raw;
  event.phase = phase.size() == 1 ? phase.front() : '\0';
}

JOULEMAP_INLINE void read_time(JsonCursor& json, std::optional<std::int64_t>& time_ns) {
  std::int64_t value = 0;
  time_ns = json.thousandths(value) ? std::optional(value) : std::nullopt;
}

JOULEMAP_INLINE void read_name(JsonCursor& json, RawEvent& event) {
  if (json.peek() != '"') return json.skip();
  event.name = json.text();
}

JOULEMAP_INLINE void read_category(JsonCursor& json, RawEvent& event) {
  if (json.peek() != '"') return json.skip();
  event.category_text = json.text().raw;
  event.category = parse_category(event.category_text);
}

// Fast path for members in the order and spacing that Kineto writes: one comparison each. read_member() reads the rest.
JOULEMAP_INLINE void read_usual_members(JsonCursor& json, RawEvent& event) {
  if (json.take(", \"cat\": ")) read_category(json, event);
  if (json.take(", \"name\": ")) read_name(json, event);
  if (json.take(", \"pid\": ")) read_track(json, event.process);
  if (json.take(", \"tid\": ")) read_track(json, event.thread);
  if (json.take(",\n    \"ts\": ")) read_time(json, event.start_ns);
  if (json.take(", \"dur\": ")) read_time(json, event.duration_ns);
}

JOULEMAP_INLINE void read_member(JsonCursor& json, std::string_view key, RawEvent& event) {
  if (equals_word(key, "ts") || equals_word(key, "dur")) {
    read_time(json, key.size() == 2 ? event.start_ns : event.duration_ns);
  } else if (equals_word(key, "pid") || equals_word(key, "tid")) {
    read_track(json, key.front() == 'p' ? event.process : event.thread);
  } else if (equals_word(key, "args")) {
    read_arguments(json, event);
  } else if (equals_word(key, "ph")) {
    read_phase(json, event);
  } else if (equals_word(key, "name")) {
    read_name(json, event);
  } else if (equals_word(key, "cat")) {
    read_category(json, event);
  } else {
    json.skip();
  }
}

bool has_time_or_name(char phase) { return phase == 'X' || phase == 'M' || phase == '\0'; }

}  // namespace

Category parse_category(std::string_view text) {
  const Category category = find_known_category(text);
  if (category != Category::unknown) return category;
  if (text.ends_with("_runtime") || text.ends_with("_driver")) return Category::api;  // xpu_runtime, mtia_runtime
  std::string lower(text.substr(0, 64));
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c | 0x20 : c; });
  return find_known_category(lower);
}

formats::JsonPosition read_event(const char* begin, const char* end, formats::QuoteRule rule, RawEvent& event) {
  JsonCursor json(begin, end, rule);
  std::string_view key;
  event.phase = '\0';
  json.enter_object();
  bool is_member = json.next_member(key);
  if (is_member && equals_word(key, "ph")) {  // usually the first member; decides whether the others are needed
    read_phase(json, event);
    is_member = has_time_or_name(event.phase);
    if (is_member) {
      event = {.phase = event.phase};
      read_usual_members(json, event);
      is_member = json.next_member(key);
    } else {
      json.leave();
    }
  } else {
    event = {};
  }
  for (; is_member; is_member = json.next_member(key)) read_member(json, key, event);
  return {json.at(), json.failed()};
}

}  // namespace joulemap::ingest::kineto
