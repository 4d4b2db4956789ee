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

constexpr std::pair<std::string_view, EventCategory> kEventCategoriesByName[] = {
    {"ac2g", EventCategory::ignored},
    {"fwdbwd", EventCategory::ignored},
    {"user_annotation", EventCategory::annotation},
    {"gpu_memcpy", EventCategory::copy},
    {"gpu_memset", EventCategory::fill},
    {"cuda_driver", EventCategory::api},
    {"gpu_user_annotation", EventCategory::ignored},
    {"cpu_instant_event", EventCategory::ignored},
    {"overhead", EventCategory::ignored},
    {"cuda_sync", EventCategory::ignored},
    {"cuda_event", EventCategory::ignored},
    {"trace", EventCategory::ignored},
    {"async_cpu_to_gpu", EventCategory::ignored},
    {"async_gpu", EventCategory::ignored},
    {"cuda_profiler_range", EventCategory::ignored},
    {"collective_comm", EventCategory::ignored},
    {"external_correlation", EventCategory::ignored},
    // Categories of PyTorch 1.8 to 1.11, also written with capitals.
    {"operator", EventCategory::op},
    {"runtime", EventCategory::api},
    {"memcpy", EventCategory::copy},
    {"memset", EventCategory::fill},
    {"python", EventCategory::python},
    {"memory", EventCategory::ignored},
};

// text == word. With a length known at compile time, this is one or two instructions.
template <std::size_t N>
bool equals_word(std::string_view text, const char (&word)[N]) {
  return text.size() == N - 1 && std::memcmp(text.data(), word, N - 1) == 0;
}

EventCategory find_known_category(std::string_view text) {
  if (equals_word(text, "cpu_op")) return EventCategory::op;  // the most frequent category
  if (equals_word(text, "cuda_runtime")) return EventCategory::api;
  if (equals_word(text, "python_function")) return EventCategory::python;
  if (equals_word(text, "kernel")) return EventCategory::kernel;
  for (const auto& [name, category] : kEventCategoriesByName) {
    if (name == text) return category;
  }
  return EventCategory::unknown;
}

bool has_relevant_arguments(const RawEvent& event) {
  switch (event.category) {
    case EventCategory::python:
    case EventCategory::ignored:
    case EventCategory::unknown:
      return false;
    default:
      return true;
  }
}

// Reads the three numbers of grid or block.
JOULEMAP_ALWAYS_INLINE void read_launch_extent(JsonCursor& json, std::array<std::uint32_t, 3>& extent) {
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
std::int64_t* find_number_argument(std::string_view key, RawEvent& event) {
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
JOULEMAP_ALWAYS_INLINE std::string_view read_json_list_text(JsonCursor& json) {
  const bool is_list = json.peek() == '[';
  const char* const begin = json.at();
  json.skip();
  return is_list && !json.failed() ? std::string_view(begin, json.at()) : std::string_view();
}

JOULEMAP_ALWAYS_INLINE void read_event_arguments(JsonCursor& json, RawEvent& event) {
  if (!has_relevant_arguments(event) || json.peek() != '{') return json.skip();
  json.enter_object();
  for (std::string_view key; json.next_member(key);) {
    if (std::int64_t* const number = find_number_argument(key, event)) {
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

JOULEMAP_ALWAYS_INLINE void read_track_id(JsonCursor& json, TrackId& track) {
  track = {};
  if (json.peek() != '"') {
    json.integer(track.number);
    return;
  }
  const std::string_view id_text = json.text().raw;
  const auto [end, error] = std::from_chars(id_text.data(), id_text.data() + id_text.size(), track.number);
  if (error != std::errc() || end != id_text.data() + id_text.size()) track = {.number = 0, .id_text = id_text};
}

JOULEMAP_ALWAYS_INLINE void read_event_phase(JsonCursor& json, RawEvent& event) {
  if (json.peek() != '"') return json.skip();
  const std::string_view phase = json.text().raw;
  event.phase = phase.size() == 1 ? phase.front() : '\0';
}

JOULEMAP_ALWAYS_INLINE void read_event_time_ns(JsonCursor& json, std::optional<std::int64_t>& time_ns) {
  std::int64_t value = 0;
  time_ns = json.thousandths(value) ? std::optional(value) : std::nullopt;
}

JOULEMAP_ALWAYS_INLINE void read_event_name(JsonCursor& json, RawEvent& event) {
  if (json.peek() != '"') return json.skip();
  event.name = json.text();
}

JOULEMAP_ALWAYS_INLINE void read_event_category(JsonCursor& json, RawEvent& event) {
  if (json.peek() != '"') return json.skip();
  event.category_text = json.text().raw;
  event.category = parse_category(event.category_text);
}

// Fast path for members in the order and spacing that Kineto writes: one comparison each. read_event_member() reads the
// rest.
JOULEMAP_ALWAYS_INLINE void read_members_in_kineto_order(JsonCursor& json, RawEvent& event) {
  if (json.consume_if_next(", \"cat\": ")) read_event_category(json, event);
  if (json.consume_if_next(", \"name\": ")) read_event_name(json, event);
  if (json.consume_if_next(", \"pid\": ")) read_track_id(json, event.process);
  if (json.consume_if_next(", \"tid\": ")) read_track_id(json, event.thread);
  if (json.consume_if_next(",\n    \"ts\": ")) read_event_time_ns(json, event.start_ns);
  if (json.consume_if_next(", \"dur\": ")) read_event_time_ns(json, event.duration_ns);
}

JOULEMAP_ALWAYS_INLINE void read_event_member(JsonCursor& json, std::string_view key, RawEvent& event) {
  if (equals_word(key, "ts") || equals_word(key, "dur")) {
    read_event_time_ns(json, key.size() == 2 ? event.start_ns : event.duration_ns);
  } else if (equals_word(key, "pid") || equals_word(key, "tid")) {
    read_track_id(json, key.front() == 'p' ? event.process : event.thread);
  } else if (equals_word(key, "args")) {
    read_event_arguments(json, event);
  } else if (equals_word(key, "ph")) {
    read_event_phase(json, event);
  } else if (equals_word(key, "name")) {
    read_event_name(json, event);
  } else if (equals_word(key, "cat")) {
    read_event_category(json, event);
  } else {
    json.skip();
  }
}

bool is_relevant_event_phase(char phase) { return phase == 'X' || phase == 'M' || phase == '\0'; }

}  // namespace

EventCategory parse_category(std::string_view text) {
  const EventCategory category = find_known_category(text);
  if (category != EventCategory::unknown) return category;
  if (text.ends_with("_runtime") || text.ends_with("_driver")) return EventCategory::api;  // xpu_runtime, mtia_runtime
  std::string lower(text.substr(0, 64));
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c | 0x20 : c; });
  return find_known_category(lower);
}

formats::JsonPosition read_event(const char* begin, const char* end, formats::QuoteRule rule, RawEvent& event) {
  JsonCursor json(begin, end, rule);
  std::string_view key;
  event.phase = '\0';
  json.enter_object();
  bool has_member = json.next_member(key);
  if (has_member && equals_word(key, "ph")) {  // usually the first member; decides whether the others are needed
    read_event_phase(json, event);
    has_member = is_relevant_event_phase(event.phase);
    if (has_member) {
      event = {.phase = event.phase};
      read_members_in_kineto_order(json, event);
      has_member = json.next_member(key);
    } else {
      json.leave();
    }
  } else {
    event = {};
  }
  for (; has_member; has_member = json.next_member(key)) read_event_member(json, key, event);
  return {json.at(), json.failed()};
}

}  // namespace joulemap::ingest::kineto
