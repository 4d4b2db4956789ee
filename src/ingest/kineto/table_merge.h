// SPDX-License-Identifier: Apache-2.0
//
// TableMerge: merges the tables of the reading threads into those of the whole trace. Numbers follow the order of first
// use in the file, so the result does not depend on the threads. Used after all threads have ended.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ingest/kineto/event_tables.h"
#include "ingest/trace.h"

namespace joulemap::ingest::kineto {

class TableMerge {
 public:
  // remap_indices() fills names, threads, classes, queues and bytes of `trace`. Both arguments must outlive this
  // object.
  TableMerge(std::span<const EventTables> tables, Trace& trace);

  // Converts the indices in `events` from the tables of `thread` to those of the trace. Must be called in file order.
  void remap_indices(std::size_t thread, std::span<TraceEvent> events);

  // Sets the names of the trace's threads. Call after all events are renumbered: only threads with events are known.
  void set_thread_names();

 private:
  // Maps each index of a thread's table to that of the trace; kUnmappedIndex until an event uses it.
  static constexpr std::uint32_t kUnmappedIndex = 0xFFFF'FFFF;
  struct IndexMaps {
    std::vector<std::uint32_t> names;
    std::vector<std::uint32_t> scoped_names;
    std::vector<std::uint32_t> threads;
    std::vector<std::uint32_t> kernel_classes;
    std::vector<std::uint32_t> kernel_queues;
    std::vector<std::uint32_t> byte_counts;
  };
  std::uint32_t add_name(const EventTables& tables, std::uint32_t number);
  std::uint32_t add_scoped_name(const EventTables& tables, std::uint32_t number);
  std::uint32_t add_thread(const EventTables& tables, std::uint32_t number);
  std::uint32_t add_kernel_class(const EventTables& tables, std::uint32_t number);
  std::uint32_t add_queue(const EventTables& tables, std::uint32_t number);
  std::uint32_t add_byte_count(const EventTables& tables, std::uint32_t number);

  std::span<const EventTables> tables_;
  Trace& trace_;
  std::vector<IndexMaps> index_maps_;
  // Entries of the trace so far: the number of an entry here is its index in the trace's table.
  StringPool names_;  // a name, or a name with module hierarchy and inputs; a leading byte distinguishes them
  StringPool track_texts_;
  StringPool threads_;
  StringPool kernel_names_;
  StringPool kernel_classes_;
  StringPool kernel_queues_;
  StringPool byte_counts_;
};

// The dotted path of the innermost module: "TOP(Net)::forward.SELF(Net)::run.conv1(Conv2d)::forward" gives conv1.
std::string module_of_hierarchy(std::string_view hierarchy);

}  // namespace joulemap::ingest::kineto
