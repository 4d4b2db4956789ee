// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <unordered_set>

#include "ingest/kernel_details.h"
#include "ingest/nsys/nsys_session.h"

namespace joulemap::ingest {
namespace {

using formats::SqliteRows;

// Indices of the columns that all GPU tables share. NsysSession::read_times() requires start and end first.
enum GpuTableColumn : int {
  kStartColumn,
  kEndColumn,
  kDeviceColumn,
  kContextColumn,
  kStreamColumn,
  kCorrelationColumn,
  kProcessColumn,
  kFirstTableSpecificColumn
};

bool read_common_columns(NsysSession& session, const SqliteRows& rows, TraceEvent& event) {
  if (!session.read_times(rows, event)) return false;
  const bool has_invalid_ids = (!rows.is_null(kDeviceColumn) && !rows.integer(kDeviceColumn)) ||
                               (!rows.is_null(kStreamColumn) && !rows.integer(kStreamColumn)) ||
                               (!rows.is_null(kCorrelationColumn) && !rows.integer(kCorrelationColumn));
  if (has_invalid_ids) {
    session.builder().add_dropped_events("with text instead of ids");
    return false;
  }
  const auto process = rows.integer(kProcessColumn);
  event.track_index =
      session.intern_queue(process, rows.integer(kDeviceColumn).value_or(0), rows.integer(kContextColumn).value_or(0),
                           rows.integer(kStreamColumn).value_or(0));
  event.correlation = session.remap_correlation_id(process, rows.integer(kCorrelationColumn));
  return true;
}

std::array<std::uint32_t, 3> read_launch_size(const SqliteRows& rows, int column) {
  std::array<std::uint32_t, 3> size{};
  for (int i = 0; i < 3; ++i) {
    size[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(rows.integer(column + i).value_or(0));
  }
  return size;
}

// Prefers the mangled name, which joulemap's capture records; not every version of nsys exports it.
std::string_view read_kernel_name(const NsysSession& session, const SqliteRows& rows) {
  for (int column = kFirstTableSpecificColumn; column < kFirstTableSpecificColumn + 4; ++column) {
    if (const std::string_view name = session.text(rows, column); !name.empty()) return name;
  }
  return "unnamed kernel";
}

// Returns the correlation ids of the CUDA graph launches whose kernels are listed individually.
std::unordered_set<std::uint32_t> read_kernel_table(NsysSession& session) {
  std::unordered_set<std::uint32_t> graphs;
  SqliteRows rows = session.database().rows(
      "CUPTI_ACTIVITY_KIND_KERNEL",
      {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "mangledName",
       "demangledName", "shortName", "name", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "graphNodeId"});
  while (rows.next()) {
    TraceEvent event{.kind = EventKind::kernel};
    if (!read_common_columns(session, rows, event)) continue;
    event.name_index = session.builder().intern_kernel_class(KernelKind::kernel, read_kernel_name(session, rows),
                                                             read_launch_size(rows, kFirstTableSpecificColumn + 4),
                                                             read_launch_size(rows, kFirstTableSpecificColumn + 7));
    if (rows.integer(kFirstTableSpecificColumn + 10).value_or(0) != 0) graphs.insert(event.correlation);
    session.add(event);
  }
  session.report_damage("CUPTI_ACTIVITY_KIND_KERNEL", rows);
  return graphs;
}

std::uint64_t read_byte_count(const SqliteRows& rows, int column) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(rows.integer(column).value_or(0), 0));
}

void read_copy_table(NsysSession& session) {
  SqliteRows rows = session.database().rows(
      "CUPTI_ACTIVITY_KIND_MEMCPY",
      {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "copyKind", "bytes"});
  while (rows.next()) {
    TraceEvent event{.kind = EventKind::copy};
    if (!read_common_columns(session, rows, event)) continue;
    event.name_index = session.builder().intern_kernel_class(
        KernelKind::copy, copy_direction_name(rows.integer(kFirstTableSpecificColumn).value_or(0)));
    event.detail_index = session.builder().intern_byte_count(read_byte_count(rows, kFirstTableSpecificColumn + 1));
    session.add(event);
  }
  session.report_damage("CUPTI_ACTIVITY_KIND_MEMCPY", rows);
}

void read_fill_table(NsysSession& session) {
  SqliteRows rows = session.database().rows(
      "CUPTI_ACTIVITY_KIND_MEMSET",
      {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "bytes"});
  while (rows.next()) {
    TraceEvent event{.kind = EventKind::fill};
    if (!read_common_columns(session, rows, event)) continue;
    event.name_index = session.builder().intern_kernel_class(KernelKind::fill, kFillClassName);
    event.detail_index = session.builder().intern_byte_count(read_byte_count(rows, kFirstTableSpecificColumn));
    session.add(event);
  }
  session.report_damage("CUPTI_ACTIVITY_KIND_MEMSET", rows);
}

// Skips graph launches whose kernels are listed, whose time would count twice.
void read_graph_table(NsysSession& session, const std::unordered_set<std::uint32_t>& graphs_with_kernels) {
  SqliteRows rows =
      session.database().rows("CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                              {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"});
  while (rows.next()) {
    TraceEvent event{.kind = EventKind::graph};
    if (!read_common_columns(session, rows, event)) continue;
    if (event.correlation != 0 && graphs_with_kernels.contains(event.correlation)) {
      session.builder().add_skipped_events();
      continue;
    }
    event.name_index = session.builder().intern_kernel_class(KernelKind::graph, kGraphClassName);
    session.add(event);
  }
  session.report_damage("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", rows);
}

}  // namespace

void read_nsys_gpu_tables(NsysSession& session) {
  const std::unordered_set<std::uint32_t> graphs = read_kernel_table(session);
  read_copy_table(session);
  read_fill_table(session);
  read_graph_table(session, graphs);
}

}  // namespace joulemap::ingest
