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
  // Fields of an event except its values.
  struct Fields {
    const XPlaneTables::EventName* named = nullptr;
    std::uint32_t name_number = 0;
    std::int64_t offset_ps = 0;
    std::int64_t duration_ps = 0;
  };
  enum class Seen : std::uint8_t { whole, unwanted, unusual };

  void read_event(std::string_view bytes, const XSegment& segment, Diagnostics& damage);
  Seen read_usual(std::string_view bytes, const char* readable, const XPlaneTables& tables, Fields& fields);
  bool read_usual_stat(std::string_view bytes, const char* readable, const XPlaneTables& tables);
  Seen read_any(std::string_view bytes, const XPlaneTables& tables, Fields& fields, Diagnostics& damage);
  void add_stat(std::string_view bytes, const XPlaneTables& tables, Diagnostics& damage);

  void forget_stats();
  XStat& new_stat();
  void keep_stat(XStatName known);

  XEventVisitor& visitor_;
  XEvent event_;
  std::vector<XStat> stats_;  // those of the current event first
  std::size_t stats_used_ = 0;
};

}  // namespace joulemap::ingest
