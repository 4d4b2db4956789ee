// SPDX-License-Identifier: Apache-2.0
//
// XPlaneLines: which lines of a profile make a Trace, and what all of their events share. What planes tell of the whole run
// (its process, versions, when it began), threads and notes go into the trace here; events are xplane_events.h's. Asked by
// one thread at a time, in the order of the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "ingest/trace_builder.h"
#include "ingest/xplane/xplane_reader.h"

namespace joulemap::ingest {

// Of the line that was wanted last.
struct XLineContext {
  std::size_t plane = 0;  // counted from 1: names are numbered within one
  bool is_device = false;
  bool feeds = false;         // a thread of tf.data
  std::uint32_t track = 0;    // of a thread: its number in the trace
  std::uint32_t ordinal = 0;  // of a device
  std::uint32_t stream = 0;   // likewise
};

class XPlaneLines : public XLineVisitor {
 public:
  explicit XPlaneLines(TraceBuilder& builder) : builder_(builder) {}

  void on_program(std::string_view name, std::string_view hlo_proto) override {
    programs_.emplace_back(name, hlo_proto);
  }
  bool on_plane(const XPlane& plane) override;
  bool on_line(const XLine& line) override;
  bool on_name(std::string_view name) override;
  void on_lost_event() override;

  const XLineContext& line() const { return line_; }
  // Name and HloProto; all of them are known from the beginning.
  const std::vector<std::pair<std::string_view, std::string_view>>& programs() const { return programs_; }
  // That such a profile has.
  std::size_t planes_known() const { return planes_known_; }
  std::optional<std::int64_t> process() const { return process_; }
  std::optional<std::int64_t> start_ns() const { return start_ns_; }

 private:
  void note_facts(const XPlane& plane);

  TraceBuilder& builder_;
  XLineContext line_;
  bool is_tpu_ = false;
  std::size_t planes_known_ = 0;
  std::optional<std::int64_t> process_;
  std::optional<std::int64_t> start_ns_;
  std::vector<std::pair<std::string_view, std::string_view>> programs_;
};

// Why an event is dropped, whoever finds out.
inline constexpr std::string_view kDamagedEvents = "that are damaged, or whose names are missing";

}  // namespace joulemap::ingest
