// SPDX-License-Identifier: Apache-2.0
//
// RawEvent: the members of one event of a PyTorch trace that matter, as they stand in the text, before they are given a
// meaning. Members may come in any order, and more than once: the last counts. Views point into the text. Pure; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/json_cursor.h"

namespace joulemap::ingest::kineto {

// What the profiler calls a category, as far as it makes a difference.
enum class Category : std::uint8_t {
  none,  // the event has none
  op,
  annotation,
  python,
  api,
  kernel,
  copy,
  fill,
  without_time,  // repeats or explains others: flows, spans on the GPU, waits, overhead
  unknown,
};

// A process or a thread: a number, or words ("Spans").
struct TrackId {
  std::int64_t number = 0;
  std::string_view words;
};

struct RawEvent {
  char phase = '\0';  // of "ph"; 0: it has none, and is no event
  Category category = Category::none;
  std::string_view category_text;
  formats::JsonText name;
  std::optional<std::int64_t> start_ns;
  std::optional<std::int64_t> duration_ns;
  TrackId process;
  TrackId thread;
  // Of "args":
  std::int64_t correlation = 0;
  std::int64_t external = 0;
  std::int64_t sequence = -1;
  std::int64_t forward_thread = 0;
  std::int64_t device = -1;
  std::int64_t context = 0;
  std::int64_t stream = -1;
  std::int64_t bytes = 0;
  std::array<std::uint32_t, 3> grid{};
  std::array<std::uint32_t, 3> block{};
  formats::JsonText hierarchy;  // "Module Hierarchy", of TorchScript
  std::string_view shapes;      // "Input Dims" and "Input type", of an op: the whole list
  std::string_view types;
  formats::JsonText label;  // "name": of a thread, in the event that names it
};

Category category_of(std::string_view text);

// Overwrites `event`, but for events whose phase is not 'X' or 'M', which take no time and name nothing: of them the phase
// alone. It fails when the text makes no sense as an object, or ends. No cursor is handed over: see formats/json_steps.h.
formats::JsonStep read_event(const char* begin, const char* end, formats::QuoteRule rule, RawEvent& event);

}  // namespace joulemap::ingest::kineto
