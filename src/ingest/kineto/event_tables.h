// SPDX-License-Identifier: Apache-2.0
//
// EventTables: the distinct names, threads, kernel classes, queues and sizes that one reading thread has seen. Converts
// a RawEvent to a TraceEvent with indices of these tables; table_merge.h converts these indices to those of the whole
// trace. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/kineto/raw_event.h"
#include "ingest/kineto/string_pool.h"
#include "ingest/trace.h"

namespace joulemap::ingest::kineto {

// Bit of TraceEvent::name that marks a name with a TorchScript module hierarchy or shapes: the other bits are an index
// in `scoped_names` instead of `names`.
inline constexpr std::uint32_t kScopedNameFlag = 0x8000'0000;

// Keys of the tables, stored as their bytes. `name_number` and `*_text` are indices in other tables of the same
// EventTables.
struct ThreadKey {
  std::int64_t process = 0;
  std::int64_t thread = 0;
  std::uint32_t process_text = 0;
  std::uint32_t thread_text = 0;
};
struct KernelClassKey {
  std::uint32_t name_number = 0;
  std::uint32_t kernel_kind = 0;
  std::array<std::uint32_t, 3> grid_size{};
  std::array<std::uint32_t, 3> block_size{};
};
struct ScopedNameKey {
  std::uint32_t name = 0;
  std::uint32_t hierarchy_size = 0;
  std::uint32_t shapes_size = 0;
};
struct QueueKey {
  std::uint32_t device = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
};

// Counts of the events in a block of text.
struct EventCounts {
  std::uint64_t event_count = 0;                 // all events
  std::uint64_t dropped_event_count = 0;         // invalid
  std::uint64_t repaired_event_count = 0;        // parsed although they have unescaped quotes
  std::uint64_t invalid_device_event_count = 0;  // GPU events with a device number that no machine has
  std::uint64_t external_ids_equal_to_correlation =
      0;  // events whose external id repeats the correlation id, and so does not identify an operation
  std::uint64_t external_ids_different_from_correlation = 0;
  std::map<std::string, std::uint64_t, std::less<>> unknown_category_counts;
};

class EventTables {
 public:
  EventTables();

  // Counts the event and, if it is a complete event ("ph": "X") of a known category, appends it to `events`. Stores
  // thread names of metadata events. Returns false if the event is invalid.
  bool add(const RawEvent& raw, std::vector<TraceEvent>& events, EventCounts& notes);

  // Copies a key back from its bytes in the table.
  template <class Key>
  static Key load_key(const StringPool& table, std::uint32_t number) {
    Key key;
    std::memcpy(&key, table.text(number).data(), sizeof key);
    return key;
  }
  template <class Key>
  static std::uint32_t intern(StringPool& table, const Key& key) {
    return table.intern({reinterpret_cast<const char*>(&key), sizeof key});
  }

  StringPool names;           // names of events on threads
  StringPool scoped_names;    // ScopedNameKey, then module hierarchy, shapes and types
  StringPool kernel_names;    // names of kernels, copies and fills
  StringPool track_texts;     // ids of processes and threads that are text instead of numbers; [0] is empty
  StringPool threads;         // ThreadKey
  StringPool kernel_classes;  // KernelClassKey
  StringPool kernel_queues;   // QueueKey
  StringPool byte_counts;     // std::uint64_t; [0] is 0
  std::map<std::uint32_t, std::string> thread_names;
  std::vector<TraceEvent> block_events;  // events of the current block

 private:
  void add_host_event(const RawEvent& raw, TraceEvent& event);
  void add_gpu_event(const RawEvent& raw, TraceEvent& event, EventCounts& notes);
  std::uint32_t intern_thread(const RawEvent& raw);
  std::uint32_t intern_name(std::string_view name, const RawEvent& raw);
  std::string_view unescape(const formats::JsonText& text);

  std::string unescaped_text_;
  std::string key_bytes_;
  ThreadKey last_thread_;  // most events are on the same thread as the previous one
  std::optional<std::uint32_t> last_thread_number_;
};

}  // namespace joulemap::ingest::kineto
