// SPDX-License-Identifier: Apache-2.0
//
// EventTables: what one of the reading threads has met so far (names, threads, kernel classes, queues, sizes), each once.
// It turns a RawEvent into a TraceEvent whose indices are numbers of these tables; trace_assembly.h makes those of the
// whole trace of them. Owned and used by one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/kineto/raw_event.h"
#include "ingest/kineto/text_table.h"
#include "ingest/trace.h"

namespace joulemap::ingest::kineto {

// A name that a TorchScript module hierarchy or shapes go with: the index of `placed` instead of one of `names`.
inline constexpr std::uint32_t kPlacedName = 0x8000'0000;

// The keys of the tables, as their bytes. `name` and the words are numbers of other tables of the same thread.
struct ThreadKey {
  std::int64_t process = 0;
  std::int64_t thread = 0;
  std::uint32_t process_words = 0;
  std::uint32_t thread_words = 0;
};
struct ClassKey {
  std::uint32_t name = 0;
  std::uint32_t kind = 0;
  std::array<std::uint32_t, 3> grid{};
  std::array<std::uint32_t, 3> block{};
};
struct PlacedKey {
  std::uint32_t name = 0;
  std::uint32_t hierarchy_size = 0;
  std::uint32_t shapes_size = 0;
};
struct QueueKey {
  std::uint32_t device = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
};

// What was told of a stretch of text besides its events.
struct EventNotes {
  std::uint64_t seen = 0;      // all that are events
  std::uint64_t dropped = 0;   // made no sense
  std::uint64_t repaired = 0;  // had quotes that were not escaped
  std::uint64_t odd_devices = 0;  // on a GPU of a number that no machine has
  std::uint64_t same_ids = 0;  // of a GPU or the runtime: the external id is the correlation, and so tells nothing
  std::uint64_t different_ids = 0;
  std::map<std::string, std::uint64_t, std::less<>> unknown_categories;
};

class EventTables {
 public:
  EventTables();

  // Appends the event when it is one that took time. False: it makes no sense.
  bool add(const RawEvent& raw, std::vector<TraceEvent>& events, EventNotes& notes);

  // An equal key of the table's, read back.
  template <class Key>
  static Key key_of(const TextTable& table, std::uint32_t number) {
    Key key;
    std::memcpy(&key, table.text(number).data(), sizeof key);
    return key;
  }
  template <class Key>
  static std::uint32_t number_of(TextTable& table, const Key& key) {
    return table.number_of({reinterpret_cast<const char*>(&key), sizeof key});
  }

  TextTable names;         // of events on threads
  TextTable placed;        // PlacedKey, then module hierarchy, shapes and types
  TextTable kernel_names;  // of kernels, copies and fills
  TextTable words;         // of processes and threads that are no numbers; [0] is empty
  TextTable threads;       // ThreadKey
  TextTable classes;       // ClassKey
  TextTable queues;        // QueueKey
  TextTable sizes;         // std::uint64_t; [0] is 0
  std::map<std::uint32_t, std::string> thread_names;
  std::vector<TraceEvent> scratch;  // events of the block that is read at present

 private:
  void add_on_thread(const RawEvent& raw, TraceEvent& event);
  void add_on_gpu(const RawEvent& raw, TraceEvent& event, EventNotes& notes);
  std::uint32_t thread_of(const RawEvent& raw);
  std::uint32_t name_of(std::string_view name, const RawEvent& raw);
  std::string_view plain(const formats::JsonText& text);

  std::string scratch_;
  std::string key_;
  ThreadKey last_thread_;  // most events are on the thread of the one before
  std::optional<std::uint32_t> last_thread_number_;
};

}  // namespace joulemap::ingest::kineto
