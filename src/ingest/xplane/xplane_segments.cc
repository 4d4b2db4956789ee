// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_segments.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/text.h"

namespace joulemap::ingest {
namespace {

using formats::ProtobufReader;

namespace space_field {
constexpr std::uint32_t kSpacePlanesField = 1, kSpaceErrorsField = 2, kSpaceWarningsField = 3;
}
namespace plane_field {
constexpr std::uint32_t kNameField = 2, kLinesField = 3;
}
namespace line_field {
constexpr std::uint32_t kIdField = 1, kNameField = 2, kTimestampField_ns = 3, kEventsField = 4;
}

// Lines that the profiler derives from a GPU's streams. Reading them, too, would count the time of the streams twice.
constexpr std::array<std::string_view, 12> kDerivedLineNames = {
    "Steps",        "Framework Name Scope", "Framework Ops",         "XLA Modules",
    "XLA Ops",      "Async XLA Ops",        "XLA TraceMe",           "Source code",
    "Launch Stats", "Source Code",          "TensorFlow Name Scope", "TensorFlow Ops"};
constexpr std::string_view kGpuPlaneNamePrefix = "/device:GPU";
constexpr std::string_view kProgramsPlaneName = "/host:metadata";
constexpr std::string_view kHloProtoStatName = "Hlo Proto";

constexpr std::size_t kMaxProfilerDiagnostics = 16;

std::string_view read_plane_name(std::string_view bytes) {
  ProtobufReader fields(bytes);
  while (fields.next()) {
    if (fields.field() == plane_field::kNameField) return fields.bytes();
  }
  return {};
}

// Writers put the fields that describe a line before its events, so the events need not be scanned for them.
XLine read_line_header(std::string_view bytes, const XPlane& plane) {
  XLine line;
  ProtobufReader fields(bytes);
  while (fields.next()) {
    if (fields.field() == line_field::kEventsField && line.begin_ns != 0 && !line.name.empty()) break;
    if (fields.field() == line_field::kIdField) line.id = fields.signed_number();
    if (fields.field() == line_field::kNameField) line.name = fields.bytes();
    if (fields.field() == line_field::kTimestampField_ns) line.begin_ns = fields.signed_number();
  }
  line.is_derived = plane.name.starts_with(kGpuPlaneNamePrefix) &&
                    std::find(kDerivedLineNames.begin(), kDerivedLineNames.end(), line.name) != kDerivedLineNames.end();
  return line;
}

// For a plane that the end of the file truncates: the names of its events come last, so no event can be identified.
void report_events_without_names(std::string_view plane, XLineVisitor& visitor) {
  const auto report_line_events = [&](std::string_view line) {
    ProtobufReader fields(line);
    while (fields.next()) {
      if (fields.field() == line_field::kEventsField) visitor.on_event_without_names();
    }
  };
  ProtobufReader fields(plane);
  while (fields.next()) {
    if (fields.field() == plane_field::kLinesField) report_line_events(fields.bytes());
  }
  if (fields.field() == plane_field::kLinesField) report_line_events(fields.truncated_field());
}

}  // namespace

XPlaneSegments::XPlaneSegments(std::string_view bytes, XLineVisitor& visitor, std::size_t segment_bytes)
    : visitor_(visitor), segment_bytes_(segment_bytes), space_fields_(bytes) {
  ProtobufReader planes(bytes);
  while (planes.next()) {
    const bool has_programs =
        planes.field() == space_field::kSpacePlanesField && read_plane_name(planes.bytes()) == kProgramsPlaneName;
    if (has_programs) visit_programs(planes.bytes());
  }
}

void XPlaneSegments::visit_programs(std::string_view bytes) {
  XPlaneTables tables(bytes, damage_);
  for (const XPlaneTables::EventName& event : tables.events()) {
    for (const std::string_view stat_bytes : event.stats) {
      XStat stat;
      tables.read_stat(stat_bytes, XPlaneTables::StatFilter::all, stat, damage_);
      if (stat.name == kHloProtoStatName) visitor_.on_program(event.name, stat.text());
    }
  }
}

std::optional<XSegment> XPlaneSegments::next() {
  while (unread_line_.empty()) {
    if (is_at_end_) return std::nullopt;
    if (next_line() || next_plane()) continue;
    is_at_end_ = true;
    add_truncation_diagnostics();
  }
  return cut_segment();
}

// Advances to the next selected line of the current plane.
bool XPlaneSegments::next_line() {
  while (current_plane_fields_.next()) {
    if (current_plane_fields_.field() != plane_field::kLinesField) continue;
    current_line_ = read_line_header(current_plane_fields_.bytes(), plane_tables_.back()->plane());
    if (!visitor_.on_line(current_line_)) continue;
    unread_line_ = current_plane_fields_.bytes();
    return true;
  }
  return false;
}

bool XPlaneSegments::next_plane() {
  while (space_fields_.next()) {
    const bool is_profiler_message = space_fields_.field() == space_field::kSpaceErrorsField ||
                                     space_fields_.field() == space_field::kSpaceWarningsField;
    if (is_profiler_message && ++profiler_diagnostic_count_ <= kMaxProfilerDiagnostics) {
      damage_.add({"framework_profiler", 1, "the framework's profiler reports: " + quoted(space_fields_.bytes()), ""});
    }
    if (space_fields_.field() != space_field::kSpacePlanesField) continue;
    plane_tables_.push_back(std::make_unique<XPlaneTables>(space_fields_.bytes(), damage_));
    XPlaneTables& tables = *plane_tables_.back();
    if (!visitor_.on_plane(tables.plane())) continue;
    for (XPlaneTables::EventName& event : tables.events()) event.are_events_read = visitor_.on_event_name(event.name);
    current_plane_fields_ = ProtobufReader(tables.bytes());
    return true;
  }
  return false;
}

void XPlaneSegments::add_truncation_diagnostics() {
  if (!space_fields_.damaged()) return;
  if (space_fields_.field() == space_field::kSpacePlanesField)
    report_events_without_names(space_fields_.truncated_field(), visitor_);
  damage_.add({"damaged_trace", 1,
               "a trace of the framework's profiler is truncated: its end is missing, including the whole last plane",
               "profile again, and stop the profiler before the program ends"});
}

// Takes the next segment from unread_line_. It ends with a field; after damage, it is the whole rest of the line.
XSegment XPlaneSegments::cut_segment() {
  XSegment segment{plane_tables_.back().get(), current_line_, unread_line_, 0, take_damage()};
  if (unread_line_.size() > segment_bytes_) {
    ProtobufReader fields(unread_line_);
    while (unread_line_.size() - fields.bytes_left() < segment_bytes_ && fields.next()) ++segment.line_field_count;
    segment.line_bytes = unread_line_.substr(0, unread_line_.size() - fields.bytes_left());
  }
  unread_line_.remove_prefix(segment.line_bytes.size());
  return segment;
}

}  // namespace joulemap::ingest
