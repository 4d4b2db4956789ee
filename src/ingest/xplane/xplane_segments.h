// SPDX-License-Identifier: Apache-2.0
//
// XPlaneSegments: the lines of a profile whose events are wanted, in pieces that several threads can read, in the order of
// the file. xplane_event_reader.h reads the events of such a piece. Views point into the bytes given.
//
//   XPlaneSegments segments(bytes, lines, kBytesPerSegment);
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
  std::string_view bytes;  // some fields of the line: nearly all of them events
  std::size_t fields = 0;  // how many
  Diagnostics damage;      // of what lies before it
};

class XPlaneSegments {
 public:
  // Asks the visitor, from here and from `next`.
  XPlaneSegments(std::string_view bytes, XLineVisitor& visitor, std::size_t segment_bytes);

  // Nothing at the end.
  std::optional<XSegment> next();
  // Of what lies behind the last segment.
  Diagnostics take_damage() { return std::exchange(damage_, {}); }

 private:
  void tell_programs(std::string_view bytes);
  bool next_line();
  bool next_plane();
  void tell_end();
  XSegment cut_segment();

  XLineVisitor& visitor_;
  std::size_t segment_bytes_;
  formats::ProtobufReader space_;
  std::vector<std::unique_ptr<XPlaneTables>> planes_;
  formats::ProtobufReader plane_{{}};  // the last one of these
  XLine line_;
  std::string_view rest_;  // of the line
  Diagnostics damage_;
  std::size_t notes_ = 0;  // of the profiler itself
  bool is_over_ = false;
};

}  // namespace joulemap::ingest
