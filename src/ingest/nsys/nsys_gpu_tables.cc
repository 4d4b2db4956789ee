// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <unordered_set>

#include "ingest/kernel_details.h"
#include "ingest/nsys/nsys_session.h"

namespace joulemap::ingest {
namespace {

using formats::SqliteRows;

// Indices of the columns that all GPU tables share. NsysSession::read_times() requires start and end first.
enum Column : int { kStart, kEnd, kDevice, kContext, kStream, kCorrelation, kProcess, kFirstOwn };

bool read_common(NsysSession& session, const SqliteRows& rows, TraceEvent& event) {
  if (!session.read_times(rows, event)) return false;
  const bool has_odd_ids = (!rows.is_null(kDevice) && !rows.integer(kDevice)) ||
                           (!rows.is_null(kStream) && !rows.integer(kStream)) ||
                           (!rows.is_null(kCorrelation) && !rows.integer(kCorrelation));
  if (has_odd_ids) {
    session.builder().count_dropped("with text instead of ids");
    return false;
  }
  const auto process = rows.integer(kProcess);
  event.track = session.queue(process, rows.integer(kDevice).value_or(0), rows.integer(kContext).value_or(0),
                              rows.integer(kStream).value_or(0));
  event.correlation = session.correlation(process, rows.integer(kCorrelation));
  return true;
}

std::array<std::uint32_t, 3> size_at(const SqliteRows& rows, int column) {
  std::array<std::uint32_t, 3> size{};
  for (int i = 0; i < 3; ++i) {
    size[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(rows.integer(column + i).value_or(0));
  }
  return size;
}

// Prefers the mangled name, which joulemap's capture records; not every version of nsys exports it.
std::string_view kernel_name(const NsysSession& session, const SqliteRows& rows) {
  for (int column = kFirstOwn; column < kFirstOwn + 4; ++column) {
    if (const std::string_view name = session.text(rows, column); !name.empty()) return name;
  }
  return "unnamed kernel";
}

// Returns the correlation ids of the CUDA graph launches whose kernels are listed individually.
std::unordered_set<std::uint32_t> read_kernels(NsysSession& session) {
  std::unordered_set<std::uint32_t> graphs;
  SqliteRows rows = session.database().rows(
      "CUPTI_ACTIVITY_KIND_KERNEL",
      {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "mangledName",
       "demangledName", "shortName", "name", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "graphNodeId"});
  while (rows.next()) {
    TraceEvent event{.kind = EventKind::kernel};
    if (!read_common(session, rows, event)) continue;
    event.name = session.builder().kernel_class(KernelKind::kernel, kernel_name(session, rows),
                                                size_at(rows, kFirstOwn + 4), size_at(rows, kFirstOwn + 7));
    if (rows.integer(kFirstOwn + 10).value_or(0) != 0) graphs.insert(event.correlation);
    session.add(event);
  }
  session.report_damage("CUPTI_ACTIVITY_KIND_KERNEL", rows);
  return graphs;
}

std::uint64_t size_of(const SqliteRows& rows, int column) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(rows.integer(column).value_or(0), 0));
}

void read_copies(NsysSession& session) {
  SqliteRows rows = session.database().rows(
      "CUPTI_ACTIVITY_KIND_MEMCPY",
      {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "copyKind", "bytes"});
  while (rows.next()) {
    TraceEvent event{.kind = EventKind::copy};
    if (!read_common(session, rows, event)) continue;
    event.name = session.builder().kernel_class(KernelKind::copy, copy_direction(rows.integer(kFirstOwn).value_or(0)));
    event.detail = session.builder().bytes(size_of(rows, kFirstOwn + 1));
    session.add(event);
  }
  session.report_damage("CUPTI_ACTIVITY_KIND_MEMCPY", rows);
}

void read_fills(NsysSession& session) {
  SqliteRows rows = session.database().rows(
      "CUPTI_ACTIVITY_KIND_MEMSET",
      {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "bytes"});
  while (rows.next()) {
    TraceEvent event{.kind = EventKind::fill};
    if (!read_common(session, rows, event)) continue;
    event.name = session.builder().kernel_class(KernelKind::fill, kFillClassName);
    event.detail = session.builder().bytes(size_of(rows, kFirstOwn));
    session.add(event);
  }
  session.report_damage("CUPTI_ACTIVITY_KIND_MEMSET", rows);
}

// Skips graph launches whose kernels are listed, whose time would count twice.
void read_graphs(NsysSession& session, const std::unordered_set<std::uint32_t>& graphs_with_kernels) {
  SqliteRows rows =
      session.database().rows("CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                              {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"});
  while (rows.next()) {
    TraceEvent event{.kind = EventKind::graph};
    if (!read_common(session, rows, event)) continue;
    if (event.correlation != 0 && graphs_with_kernels.contains(event.correlation)) {
      session.builder().count_skipped();
      continue;
    }
    event.name = session.builder().kernel_class(KernelKind::graph, kGraphClassName);
    session.add(event);
  }
  session.report_damage("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", rows);
}

}  // namespace

void read_gpu_tables(NsysSession& session) {
  const std::unordered_set<std::uint32_t> graphs = read_kernels(session);
  read_copies(session);
  read_fills(session);
  read_graphs(session, graphs);
}

}  // namespace joulemap::ingest
