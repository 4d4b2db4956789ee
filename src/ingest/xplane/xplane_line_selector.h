// SPDX-License-Identifier: Apache-2.0
//
// XPlaneLineSelector: selects the lines of a profile that belong to the Trace, and holds the data that all events of a line
// share. Collects facts of the whole run (process, versions, start time) and adds threads and diagnostics to the trace;
// xplane_event_converter.h converts the events. Called by one thread at a time, in file order.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "ingest/trace_builder.h"
#include "ingest/xplane/xplane_reader.h"

namespace joulemap::ingest {

// What the events of a line have in common.
struct XLineContext {
  std::size_t plane = 0;  // counted from 1; names are numbered within a plane
  bool is_device_plane = false;
  bool is_input_pipeline = false;    // a thread of tf.data
  bool is_steps_line = false;        // the line "Steps" of a device, which the profiler derives
  std::uint32_t track = 0;           // host: index of the thread in the trace
  std::uint32_t device_ordinal = 0;  // device: its number
  std::uint32_t stream_id = 0;       // device: number of the stream
};

class XPlaneLineSelector : public XLineVisitor {
 public:
  explicit XPlaneLineSelector(TraceBuilder& builder) : builder_(builder) {}

  void on_program(std::string_view name, std::string_view hlo_proto) override {
    programs_.emplace_back(name, hlo_proto);
  }
  bool on_plane(const XPlane& plane) override;
  bool on_line(const XLine& line) override;
  bool on_event_name(std::string_view name) override;
  void on_event_without_names() override;

  const XLineContext& line() const { return line_context_; }  // the last selected line
  // Name and HloProto of each XLA program; complete when the constructor of XPlaneSegments returns.
  const std::vector<std::pair<std::string_view, std::string_view>>& programs() const { return programs_; }
  // Number of recognized planes; 0 if the file is not such a profile.
  std::size_t recognized_plane_count() const { return recognized_plane_count_; }
  std::optional<std::int64_t> process() const { return process_id_; }
  std::optional<std::int64_t> start_ns() const { return start_ns_; }

 private:
  void add_environment(const XPlane& plane);

  TraceBuilder& builder_;
  XLineContext line_context_;
  bool is_tpu_ = false;
  bool has_steps_ = false;  // a line "Steps" was selected
  std::size_t recognized_plane_count_ = 0;
  std::optional<std::int64_t> process_id_;
  std::optional<std::int64_t> start_ns_;
  std::vector<std::pair<std::string_view, std::string_view>> programs_;
};

// Reason of dropped events, shared by all readers.
inline constexpr std::string_view kDamagedEventsReason = "that are damaged, or whose names are missing";

}  // namespace joulemap::ingest
