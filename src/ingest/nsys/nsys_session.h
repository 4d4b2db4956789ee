// SPDX-License-Identifier: Apache-2.0
//
// NsysSession: the data that tables of an Nsight Systems export refer to (strings, processes, GPUs), and the trace
// under construction. One reader, one thread; the database outlives it. Times are nanoseconds, as in the file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/sqlite.h"
#include "ingest/trace_builder.h"

namespace joulemap::ingest {

// The process and thread id in a global id of nsys: 24 bits each.
std::int64_t process_id_of(std::int64_t global_id);
std::int64_t thread_id_of(std::int64_t global_id);

class NsysSession {
 public:
  explicit NsysSession(const formats::SqliteDatabase& database) : database_(database) {}

  const formats::SqliteDatabase& database() const { return database_; }
  TraceBuilder& builder() { return builder_; }

  // Reads strings, GPUs, the host and the start of the session.
  void read_session_tables();
  // Returns the text of a column that contains a text or a string id; empty if there is none.
  std::string_view text(const formats::SqliteRows& rows, int column) const;
  std::uint32_t intern_thread(std::int64_t global_id);
  // Index of a queue; `device` is the ordinal of the GPU in that process.
  std::uint32_t intern_queue(std::optional<std::int64_t> global_id, std::int64_t device, std::int64_t context,
                             std::int64_t stream);
  // Each process counts its own correlation ids; the returned ones are unique across processes. 0 if there is none.
  std::uint32_t remap_correlation_id(std::optional<std::int64_t> global_id, std::optional<std::int64_t> id);

  // Sets start and duration from columns 0 and 1. Returns false, and counts the row as dropped, if they are invalid.
  bool read_times(const formats::SqliteRows& rows, TraceEvent& event);
  // Adds an event and updates last_event_end_ns(), which is the end of ranges that were never closed.
  void add(const TraceEvent& event);
  std::int64_t last_event_end_ns() const { return last_event_end_ns_; }
  // Adds a diagnostic if the rows of a table end with damage.
  void report_damage(std::string_view table, const formats::SqliteRows& rows);

  Trace finish() &&;

 private:
  struct Gpu {
    std::string name;
    std::string uuid;
  };

  void read_gpus();
  std::string find_gpu_uuid(std::int64_t process, std::int64_t device) const;

  const formats::SqliteDatabase& database_;
  TraceBuilder builder_{"nsys"};
  std::unordered_map<std::int64_t, std::string> texts_;
  std::map<std::int64_t, Gpu> gpus_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>
      gpu_id_by_device_;                              // key of gpus_, by process and ordinal
  std::map<std::int64_t, std::string> thread_names_;  // by global id
  std::unordered_map<std::int64_t, std::uint32_t> threads_;
  std::map<std::array<std::int64_t, 4>, std::uint32_t> queues_;
  std::optional<std::int64_t> first_process_id_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> remapped_correlation_ids_;
  std::optional<std::int64_t> session_start_ns_;
  std::int64_t last_event_end_ns_ = 0;
  std::uint64_t event_count_ = 0;
  std::uint64_t unix_time_event_count_ = 0;  // events whose start is a Unix time
};

// Read the tables of GPU work and of threads into the session.
void read_nsys_gpu_tables(NsysSession& session);
void read_nsys_host_tables(NsysSession& session);

}  // namespace joulemap::ingest
