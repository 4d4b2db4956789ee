// SPDX-License-Identifier: Apache-2.0
//
// TableMerge: from the tables that each thread made on its own to those of the whole trace. Numbers are given in the order
// in which events use them first, so that a file gives the same trace whatever the threads did. Used once all have ended.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ingest/kineto/event_tables.h"
#include "ingest/trace.h"

namespace joulemap::ingest::kineto {

class TableMerge {
 public:
  // Fills names, threads, classes, queues and bytes of the trace. Both must outlive it.
  TableMerge(std::span<const EventTables> tables, Trace& trace);

  // `events` hold numbers of the tables of `thread`; then of the trace. In the order of the file.
  void renumber(std::size_t thread, std::span<TraceEvent> events);

  // Once all events are numbered: threads that no event is on stay out.
  void name_threads();

 private:
  // For each number of a thread's table that of the trace, or kNone as long as no event used it.
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;
  struct Numbers {
    std::vector<std::uint32_t> names;
    std::vector<std::uint32_t> placed;
    std::vector<std::uint32_t> threads;
    std::vector<std::uint32_t> classes;
    std::vector<std::uint32_t> queues;
    std::vector<std::uint32_t> sizes;
  };
  std::uint32_t add_name(const EventTables& tables, std::uint32_t number);
  std::uint32_t add_placed(const EventTables& tables, std::uint32_t number);
  std::uint32_t add_thread(const EventTables& tables, std::uint32_t number);
  std::uint32_t add_class(const EventTables& tables, std::uint32_t number);
  std::uint32_t add_queue(const EventTables& tables, std::uint32_t number);
  std::uint32_t add_size(const EventTables& tables, std::uint32_t number);

  std::span<const EventTables> tables_;
  Trace& trace_;
  std::vector<Numbers> numbers_;
  // What the trace has already, with numbers of the trace within.
  TextTable names_;  // a name, or a name, its module hierarchy and its inputs, behind a byte that tells them apart
  TextTable words_;
  TextTable threads_;
  TextTable kernel_names_;
  TextTable classes_;
  TextTable queues_;
  TextTable sizes_;
};

// The dotted path of the innermost module of "TOP(Net)::forward.SELF(Net)::run.conv1(Conv2d)::forward": conv1.
std::string module_of_hierarchy(std::string_view hierarchy);

}  // namespace joulemap::ingest::kineto
