// SPDX-License-Identifier: Apache-2.0
//
// RawEvent: the relevant members of one event of a PyTorch trace, before interpretation. Members may come in any order
// and more than once: the last one counts. Views point into the text. Pure; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/json_cursor.h"

namespace joulemap::ingest::kineto {

// The profiler's categories, as far as they are distinguished.
enum class EventCategory : std::uint8_t {
  none,  // the event has no category
  op,
  annotation,
  python,
  api,
  kernel,
  copy,
  fill,
  ignored,  // describes other events, or no work: flows, annotations on the GPU, waits, overhead
  unknown,
};

// "pid" or "tid" of an event: a number or, for tracks of the profiler itself, a text ("Spans").
struct TrackId {
  std::int64_t number = 0;
  std::string_view id_text;
};

struct RawEvent {
  char phase = '\0';  // "ph"; 0: missing, so this is not an event
  EventCategory category = EventCategory::none;
  std::string_view category_text;
  formats::JsonText name;
  std::optional<std::int64_t> start_ns;
  std::optional<std::int64_t> duration_ns;
  TrackId process;
  TrackId thread;
  // From "args":
  std::int64_t correlation = 0;
  std::int64_t external_id = 0;
  std::int64_t sequence_number = -1;
  std::int64_t forward_thread = 0;
  std::int64_t device = -1;
  std::int64_t context = 0;
  std::int64_t stream = -1;
  std::int64_t bytes = 0;
  std::array<std::uint32_t, 3> grid_size{};
  std::array<std::uint32_t, 3> block_size{};
  formats::JsonText module_hierarchy;  // "Module Hierarchy" of TorchScript
  std::string_view tensor_shapes;      // "Input Dims" of an op: source text of the list
  std::string_view tensor_types;       // "Input type" of an op: source text of the list
  formats::JsonText thread_name;       // "name" of a thread, in its metadata event
};

EventCategory parse_category(std::string_view text);

// Reads the event at `begin` into `event` and returns the position after it; fails if the text is not a valid object or
// ends within it. If "ph" comes first and is neither 'X' (complete event) nor 'M' (metadata), only the phase is set.
// Takes no cursor: see formats/json_parsing.h.
formats::JsonPosition read_event(const char* begin, const char* end, formats::QuoteRule rule, RawEvent& event);

}  // namespace joulemap::ingest::kineto
