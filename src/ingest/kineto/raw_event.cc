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

constexpr std::pair<std::string_view, Category> kCategories[] = {
    {"ac2g", Category::without_time},
    {"fwdbwd", Category::without_time},
    {"user_annotation", Category::annotation},
    {"gpu_memcpy", Category::copy},
    {"gpu_memset", Category::fill},
    {"cuda_driver", Category::api},
    {"gpu_user_annotation", Category::without_time},
    {"cpu_instant_event", Category::without_time},
    {"overhead", Category::without_time},
    {"cuda_sync", Category::without_time},
    {"cuda_event", Category::without_time},
    {"trace", Category::without_time},
    {"async_cpu_to_gpu", Category::without_time},
    {"async_gpu", Category::without_time},
    {"cuda_profiler_range", Category::without_time},
    {"collective_comm", Category::without_time},
    {"external_correlation", Category::without_time},
    // PyTorch 1.8 to 1.11; in capitals, too
    {"operator", Category::op},
    {"runtime", Category::api},
    {"memcpy", Category::copy},
    {"memset", Category::fill},
    {"python", Category::python},
    {"memory", Category::without_time},
};

// With the length known when it is compiled, this is one or two instructions.
template <std::size_t N>
bool is(std::string_view text, const char (&word)[N]) {
  return text.size() == N - 1 && std::memcmp(text.data(), word, N - 1) == 0;
}

Category known_category(std::string_view text) {
  if (is(text, "cpu_op")) return Category::op;  // most are
  if (is(text, "cuda_runtime")) return Category::api;
  if (is(text, "python_function")) return Category::python;
  if (is(text, "kernel")) return Category::kernel;
  for (const auto& [name, category] : kCategories) {
    if (name == text) return category;
  }
  return Category::unknown;
}

bool has_wanted_args(const RawEvent& event) {
  switch (event.category) {
    case Category::python:
    case Category::without_time:
    case Category::unknown:
      return false;
    default:
      return true;
  }
}

// Of grid and block: three numbers.
void read_extent(JsonCursor& json, std::array<std::uint32_t, 3>& extent) {
  if (json.peek() != '[') return json.skip();
  json.enter_array();
  for (std::size_t i = 0; json.next_element(); ++i) {
    std::int64_t value = 0;
    if (json.integer(value) && i < extent.size() && value >= 0 && value <= std::numeric_limits<std::uint32_t>::max()) {
      extent[i] = static_cast<std::uint32_t>(value);
    }
  }
}

// AMD's streams of runtime calls are texts ("0x0"): not a number, and not needed.
void read_number(JsonCursor& json, std::int64_t& value) {
  std::int64_t read = 0;
  if (json.integer(read)) value = read;
}

void read_text(JsonCursor& json, formats::JsonText& text) {
  if (json.peek() == '"') {
    text = json.text();
  } else {
    json.skip();
  }
}

void read_argument(JsonCursor& json, std::string_view key, RawEvent& event) {
  switch (key.size()) {
    case 4:
      if (is(key, "grid")) return read_extent(json, event.grid);
      if (is(key, "name")) return read_text(json, event.label);
      break;
    case 5:
      if (is(key, "block")) return read_extent(json, event.block);
      if (is(key, "bytes")) return read_number(json, event.bytes);
      break;
    case 6:
      if (is(key, "device")) return read_number(json, event.device);
      if (is(key, "stream")) return read_number(json, event.stream);
      break;
    case 7:
      if (is(key, "context")) return read_number(json, event.context);
      break;
    case 11:
      if (is(key, "correlation")) return read_number(json, event.correlation);
      if (is(key, "External id") || is(key, "external id")) return read_number(json, event.external);
      break;
    case 13:
      if (is(key, "Fwd thread id")) return read_number(json, event.forward_thread);
      break;
    case 15:
      if (is(key, "Sequence number")) return read_number(json, event.sequence);
      break;
    case 16:
      if (is(key, "Module Hierarchy")) return read_text(json, event.hierarchy);
      break;
    default:
      break;
  }
  json.skip();
}

void read_arguments(JsonCursor& json, RawEvent& event) {
  if (!has_wanted_args(event) || json.peek() != '{') return json.skip();
  json.enter_object();
  for (std::string_view key; json.next_member(key);) read_argument(json, key, event);
}

void read_track(JsonCursor& json, TrackId& track) {
  track = {};
  if (json.peek() != '"') return read_number(json, track.number);
  const std::string_view words = json.text().raw;
  const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), track.number);
  if (error == std::errc() && end == words.data() + words.size()) return;
  track = {.number = 0, .words = words};
}

void read_time(JsonCursor& json, std::optional<std::int64_t>& time_ns) {
  std::int64_t value = 0;
  time_ns = json.thousandths(value) ? std::optional(value) : std::nullopt;
}

void read_category(JsonCursor& json, RawEvent& event) {
  formats::JsonText text;
  read_text(json, text);
  event.category_text = text.raw;
  event.category = category_of(text.raw);
}

void read_member(JsonCursor& json, std::string_view key, RawEvent& event) {
  if (is(key, "ts")) return read_time(json, event.start_ns);
  if (is(key, "dur")) return read_time(json, event.duration_ns);
  if (is(key, "cat")) return read_category(json, event);
  if (is(key, "name")) return read_text(json, event.name);
  if (is(key, "pid")) return read_track(json, event.process);
  if (is(key, "tid")) return read_track(json, event.thread);
  if (is(key, "args")) return read_arguments(json, event);
  json.skip();
}

}  // namespace

Category category_of(std::string_view text) {
  const Category category = known_category(text);
  if (category != Category::unknown) return category;
  if (text.ends_with("_runtime") || text.ends_with("_driver")) return Category::api;  // xpu_runtime, mtia_runtime
  std::string lower(text.substr(0, 64));
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c | 0x20 : c; });
  return known_category(lower);
}

bool read_event(JsonCursor& json, RawEvent& event) {
  if (!json.enter_object()) return false;
  for (std::string_view key; json.next_member(key);) {
    if (!is(key, "ph")) {
      read_member(json, key, event);
      continue;
    }
    formats::JsonText phase;
    read_text(json, phase);
    event.phase = phase.raw.empty() ? '\0' : phase.raw.front();
    const bool is_wanted = event.phase == 'X' || event.phase == 'M' || event.phase == '\0';
    if (!is_wanted && !json.failed()) {
      json.leave();
      break;
    }
  }
  return !json.failed();
}

}  // namespace joulemap::ingest::kineto
