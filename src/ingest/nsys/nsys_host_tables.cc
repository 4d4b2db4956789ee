// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "ingest/nsys/nsys_session.h"
#include "ingest/nsys/nvtx_names.h"

namespace joulemap::ingest {
namespace {

using formats::SqliteRows;

void read_cuda_call_table(NsysSession& session) {
  SqliteRows rows = session.database().rows("CUPTI_ACTIVITY_KIND_RUNTIME",
                                            {"start", "end", "globalTid", "correlationId", "nameId", "name"});
  while (rows.next()) {
    TraceEvent event{.kind = EventKind::api};
    if (!session.read_times(rows, event)) continue;
    const auto thread = rows.integer(2);
    if (!thread && !rows.is_null(2)) {
      session.builder().add_dropped_events("with text instead of ids");
      continue;
    }
    event.track_index = session.intern_thread(thread.value_or(0));
    event.correlation = session.remap_correlation_id(thread, rows.integer(3));
    const std::string_view name = session.text(rows, 4).empty() ? session.text(rows, 5) : session.text(rows, 4);
    event.name_index = session.builder().intern_name(name.empty() ? "unnamed call" : name);
    session.add(event);
  }
  session.report_damage("CUPTI_ACTIVITY_KIND_RUNTIME", rows);
}

// NVTX ranges: types 59 and 70 are push/pop, 60 and 71 start/end. Other types are marks and names of categories,
// threads and domains. (exported_data.html of the Nsight Systems User Guide.)
bool is_range_event(const SqliteRows& rows, int column) {
  const auto type = rows.integer(column);
  return rows.is_null(column) || type == 59 || type == 60 || type == 70 || type == 71;
}

class NvtxRangeReader {
 public:
  explicit NvtxRangeReader(NsysSession& session) : session_(session) {}

  void read() {
    SqliteRows rows =
        session_.database().rows("NVTX_EVENTS", {"start", "end", "eventType", "text", "textId", "globalTid"});
    while (rows.next()) {
      if (is_range_event(rows, 2)) {
        add(rows);
      } else {
        session_.builder().add_skipped_events();
      }
    }
    session_.report_damage("NVTX_EVENTS", rows);
  }

  // Adds the ranges without an end, which last until the last event, and sets the scopes of XLA's operations. Call it
  // after everything else has been read.
  void finish() {
    for (TraceEvent& event : open_ranges_) {
      event.duration_ns = std::max<std::int64_t>(session_.last_event_end_ns() - event.start_ns, 0);
      session_.add(event);
    }
    if (!open_ranges_.empty()) {
      session_.builder().trace().diagnostics.add(
          {"ranges_open", open_ranges_.size(), "nsys: NVTX ranges without an end last until the end of the trace", ""});
    }
    // Scopes are set last, because whether the program trains is known only now: if so, operations outside of forward
    // and backward update parameters.
    const bool is_training_program = std::any_of(xla_names_.begin(), xla_names_.end(), [](const auto& xla_name) {
      return scopes::is_gradient_op(xla_name.second);
    });
    for (const auto& [name, op_name] : xla_names_) {
      session_.builder().trace().names[name].scope = scopes::scope_of_xla_op(op_name, is_training_program);
    }
  }

 private:
  void add(const SqliteRows& rows) {
    const std::string_view text = session_.text(rows, 3).empty() ? session_.text(rows, 4) : session_.text(rows, 3);
    if (text.empty()) return session_.builder().add_dropped_events("without a name");
    TraceEvent event{.kind = EventKind::annotation};
    const auto start_ns = rows.integer(0);
    const bool is_open = rows.is_null(1) && start_ns;
    if (is_open) {
      event.start_ns = *start_ns;
    } else if (!session_.read_times(rows, event)) {
      return;
    }
    event.track_index = session_.intern_thread(rows.integer(5).value_or(0));
    set_name_and_kind(text, event);
    if (is_open) {
      open_ranges_.push_back(event);
    } else {
      session_.add(event);
    }
  }

  void set_name_and_kind(std::string_view text, TraceEvent& event) {
    if (const auto xla = parse_xla_range(text)) {
      event.kind = EventKind::op;
      event.name_index = intern_xla_name(*xla);
    } else if (const auto torch = parse_torch_range(text)) {
      event.kind = EventKind::op;
      event.name_index = session_.builder().intern_name(torch->name);
      event.is_backward = torch->is_backward;
      if (torch->sequence_number) event.detail_index = *torch->sequence_number + 1;
    } else {
      event.name_index = session_.builder().intern_name(text);
    }
  }

  // Instructions of two programs may have equal names but different scopes: temporary scopes distinguish their entries
  // until finish() sets the real ones.
  std::uint32_t intern_xla_name(const XlaRange& range) {
    if (range.op_name.empty())
      return session_.builder().intern_name(range.instruction, {.op = std::string(range.instruction)});
    const std::uint32_t name = session_.builder().intern_name(range.instruction, {.op = std::string(range.op_name)});
    xla_names_.try_emplace(name, range.op_name);
    return name;
  }

  NsysSession& session_;
  std::vector<TraceEvent> open_ranges_;
  std::unordered_map<std::uint32_t, std::string> xla_names_;
};

}  // namespace

void read_nsys_host_tables(NsysSession& session) {
  read_cuda_call_table(session);
  NvtxRangeReader ranges(session);
  ranges.read();
  ranges.finish();
}

}  // namespace joulemap::ingest
