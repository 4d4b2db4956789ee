// SPDX-License-Identifier: Apache-2.0
//
// XPlaneSegments: splits the selected lines of a profile into segments that several threads can read, in file order.
// xplane_event_reader.h reads the events of a segment. Views point into the bytes given.
//
//   XPlaneSegments segments(bytes, lines, bytes_per_segment);
//   while (auto segment = segments.next()) reader.read(*segment, damage);   // `next` by one thread at a time
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/protobuf.h"
#include "ingest/xplane/xplane_reader.h"
#include "ingest/xplane/xplane_tables.h"
#include "model/diagnostics.h"

namespace joulemap::ingest {

struct XSegment {
  const XPlaneTables* tables = nullptr;  // lives as long as the XPlaneSegments
  XLine line;
  std::string_view line_bytes;       // fields of the line, nearly all of them events
  std::size_t line_field_count = 0;  // count of fields in `line_bytes`; 0 if not counted, at the end of a line
  Diagnostics damage;                // found in the file between the previous segment and this one
};

class XPlaneSegments {
 public:
  // Calls the visitor: here for programs, in `next` for planes and lines.
  XPlaneSegments(std::string_view bytes, XLineVisitor& visitor, std::size_t segment_bytes);

  // Returns the next segment; nullopt at the end.
  std::optional<XSegment> next();
  // Damage found after the last segment.
  Diagnostics take_damage() { return std::exchange(damage_, {}); }

 private:
  void visit_programs(std::string_view bytes);
  bool next_line();
  bool next_plane();
  void add_truncation_diagnostics();
  XSegment cut_segment();

  XLineVisitor& visitor_;
  std::size_t segment_bytes_;
  formats::ProtobufReader space_fields_;
  std::vector<std::unique_ptr<XPlaneTables>> plane_tables_;
  formats::ProtobufReader current_plane_fields_{{}};  // reads plane_tables_.back()
  XLine current_line_;
  std::string_view unread_line_;  // part of the current line that is in no segment yet
  Diagnostics damage_;
  std::size_t profiler_diagnostic_count_ = 0;  // count of errors and warnings that the profiler itself wrote
  bool is_at_end_ = false;
};

}  // namespace joulemap::ingest
