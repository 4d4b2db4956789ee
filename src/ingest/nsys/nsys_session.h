// SPDX-License-Identifier: Apache-2.0
//
// NsysSession: what the tables of an Nsight Systems export refer to: its texts, processes, GPUs, and the trace that is being
// made. One reader, one thread; the database outlives it. Times are nanoseconds, as in the file.
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

// Half of a global id: processes have 24 bits, and so have threads.
std::int64_t process_of(std::int64_t global_id);
std::int64_t thread_of(std::int64_t global_id);

class NsysSession {
 public:
  explicit NsysSession(const formats::SqliteDatabase& database) : database_(database) {}

  const formats::SqliteDatabase& database() const { return database_; }
  TraceBuilder& builder() { return builder_; }

  // Texts, GPUs, the host and when the session began.
  void read_tables();
  // The text of a column that holds one, or the number of one; empty when there is none.
  std::string_view text(const formats::SqliteRows& rows, int column) const;
  std::uint32_t thread(std::int64_t global_id);
  // Of a device that a process knows by that ordinal.
  std::uint32_t queue(std::optional<std::int64_t> global_id, std::int64_t device, std::int64_t context,
                      std::int64_t stream);
  // Processes count their correlation ids each for itself; here no two share one.
  std::uint32_t correlation(std::optional<std::int64_t> global_id, std::optional<std::int64_t> id);

  // False, and counted, where the times of a row make no sense.
  bool read_times(const formats::SqliteRows& rows, TraceEvent& event);
  // An event that lies in the trace, for what lasts until its end.
  void add(const TraceEvent& event);
  std::int64_t last_ns() const { return last_ns_; }
  // Tells what a table's rows ended with, if it was damage.
  void note_damage(std::string_view table, const formats::SqliteRows& rows);

  Trace finish() &&;

 private:
  struct Gpu {
    std::string name;
    std::string uuid;
  };

  void read_gpus();
  std::string uuid_of(std::int64_t process, std::int64_t device) const;

  const formats::SqliteDatabase& database_;
  TraceBuilder builder_{"nsys"};
  std::unordered_map<std::int64_t, std::string> texts_;
  std::map<std::int64_t, Gpu> gpus_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> gpu_ids_;  // by process and ordinal
  std::map<std::int64_t, std::string> thread_names_;                       // by global id
  std::unordered_map<std::int64_t, std::uint32_t> threads_;
  std::map<std::array<std::int64_t, 4>, std::uint32_t> queues_;
  std::optional<std::int64_t> first_process_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> other_correlations_;
  std::optional<std::int64_t> session_start_ns_;
  std::int64_t last_ns_ = 0;
  bool is_unix_time_ = false;
};

// The tables of what ran on GPUs, and of what ran on threads.
void read_gpu_tables(NsysSession& session);
void read_host_tables(NsysSession& session);

}  // namespace joulemap::ingest
