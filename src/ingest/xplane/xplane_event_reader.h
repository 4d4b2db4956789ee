// SPDX-License-Identifier: Apache-2.0
//
// XEventReader: parses the events of a segment (xplane_segments.h) and passes them to a visitor. A fast path reads
// events as profilers write them; events with other fields or damage are read again field by field. Single-threaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ingest/xplane/xplane_reader.h"
#include "ingest/xplane/xplane_segments.h"
#include "ingest/xplane/xplane_tables.h"
#include "model/diagnostics.h"

namespace joulemap::ingest {

class XEventReader {
 public:
  explicit XEventReader(XEventVisitor& visitor) : visitor_(visitor) {}
  void read(const XSegment& segment, Diagnostics& damage);

 private:
  // Fields of an event except its stats.
  struct EventFields {
    const XPlaneTables::EventName* event_name = nullptr;
    std::uint32_t name_number = 0;
    std::int64_t offset_ps = 0;
    std::int64_t duration_ps = 0;
  };
  enum class ParseOutcome : std::uint8_t { complete, unselected, needs_slow_path };

  void read_event(std::string_view bytes, const XSegment& segment, Diagnostics& damage);
  ParseOutcome try_read_event_fast(std::string_view bytes, const char* readable, const XPlaneTables& tables,
                                   EventFields& fields);
  bool try_read_stat_fast(std::string_view bytes, const char* readable, const XPlaneTables& tables);
  ParseOutcome read_event_by_field(std::string_view bytes, const XPlaneTables& tables, EventFields& fields,
                                   Diagnostics& damage);
  void add_stat(std::string_view bytes, const XPlaneTables& tables, Diagnostics& damage);

  void clear_stats();
  XStat& append_stat();
  void index_last_stat(XStatName stat_name);

  XEventVisitor& visitor_;
  XEvent event_;
  std::vector<XStat>
      stat_buffer_;  // the first used_stat_count_ belong to the current event; the others are kept for reuse
  std::size_t used_stat_count_ = 0;
};

}  // namespace joulemap::ingest
