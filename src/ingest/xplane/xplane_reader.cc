// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_reader.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/text.h"
#include "formats/protobuf.h"

namespace joulemap::ingest {
namespace {

using formats::ProtobufReader;

namespace space_field {
constexpr std::uint32_t kPlanes = 1, kErrors = 2, kWarnings = 3;
}
namespace plane_field {
constexpr std::uint32_t kId = 1, kName = 2, kLines = 3, kEventMetadata = 4, kStatMetadata = 5, kStats = 6;
}
namespace line_field {
constexpr std::uint32_t kId = 1, kName = 2, kTimestamp_ns = 3, kEvents = 4;
}
namespace event_field {
constexpr std::uint32_t kMetadata = 1, kOffset_ps = 2, kDuration_ps = 3, kStats = 4;
}
namespace stat_field {
constexpr std::uint32_t kMetadata = 1, kDouble = 2, kUnsigned = 3, kSigned = 4, kText = 5, kBytes = 6, kReference = 7;
}
namespace metadata_field {
constexpr std::uint32_t kName = 2, kDisplayName = 4, kStats = 5;
}
constexpr std::uint32_t kMapKey = 1, kMapValue = 2;

// Lines that the profiler makes of a GPU's streams, and that would count their time again.
constexpr std::array<std::string_view, 9> kDerivedLines = {
    "Steps",       "Framework Name Scope", "Framework Ops", "XLA Modules", "XLA Ops",
    "XLA TraceMe", "Source code",          "Launch Stats",  "Source Code"};
constexpr std::string_view kGpu = "/device:GPU";
constexpr std::string_view kPrograms = "/host:metadata";
constexpr std::string_view kHloProto = "Hlo Proto";

constexpr std::int64_t kPicosecondsPerNanosecond = 1000;
// A week: no trace is longer, and sums of such times fit.
constexpr std::int64_t kLongest_ps = 604'800 * std::int64_t{1'000'000'000'000};
constexpr std::size_t kMostNotes = 16;  // of the profiler itself

XPlaneKind kind_of(std::string_view name) {
  if (name.starts_with("/device:")) return XPlaneKind::device;
  if (name == "/host:CPU" || name == "/host:python-tracer") return XPlaneKind::host;
  return XPlaneKind::metadata;
}

std::string_view name_of_plane(std::string_view bytes) {
  ProtobufReader fields(bytes);
  while (fields.next()) {
    if (fields.field() == plane_field::kName) return fields.bytes();
  }
  return {};
}

// Sums of what a file says must not overflow; such a time is nonsense anyway.
std::int64_t later_by(std::int64_t time_ns, std::int64_t offset_ps) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(time_ns, offset_ps / kPicosecondsPerNanosecond, &sum) ? time_ns : sum;
}

// One plane: the tables of names first, which lie behind the lines in the file, and then the lines.
class PlaneReading {
 public:
  PlaneReading(std::string_view bytes, XPlaneVisitor& visitor, Diagnostics& diagnostics)
      : bytes_(bytes), visitor_(visitor), diagnostics_(diagnostics) {}

  // The programs of the plane that holds them.
  void tell_programs() {
    read_tables();
    for (const auto& [id, event] : event_names_) {
      stats_.clear();
      for (const std::string_view stat : event.stats) add_stat(stat);
      for (const XStat& stat : stats_) {
        if (stat.name == kHloProto) visitor_.on_program(event.name, stat.text());
      }
    }
  }

  void run() {
    read_tables();
    for (const std::string_view stat : plane_stats_) add_stat(stat);
    plane_.stats = stats_;
    if (!visitor_.on_plane(plane_)) return;
    ProtobufReader fields(bytes_);
    while (fields.next()) {
      if (fields.field() == plane_field::kLines) read_line(fields.bytes());
    }
  }

 private:
  struct EventName {
    std::string_view name;
    std::string_view display_name;
    std::vector<std::string_view> stats;
  };

  void note_damage(const ProtobufReader& fields, std::string_view what) {
    if (!fields.damaged()) return;
    diagnostics_.add({"damaged_trace", 1, "a trace of the framework's profiler is damaged: " + std::string(what), ""});
  }

  void read_tables() {
    ProtobufReader fields(bytes_);
    while (fields.next()) {
      if (fields.field() == plane_field::kId) plane_.id = fields.signed_number();
      if (fields.field() == plane_field::kName) plane_.name = fields.bytes();
      if (fields.field() == plane_field::kEventMetadata) add_event_name(fields.bytes());
      if (fields.field() == plane_field::kStatMetadata) add_stat_name(fields.bytes());
      if (fields.field() == plane_field::kStats) plane_stats_.push_back(fields.bytes());
    }
    note_damage(fields, "a plane");
    plane_.kind = kind_of(plane_.name);
  }

  struct Entry {
    std::int64_t key = 0;
    std::string_view value;
  };
  Entry map_entry(std::string_view bytes) {
    Entry entry;
    ProtobufReader fields(bytes);
    while (fields.next()) {
      if (fields.field() == kMapKey) entry.key = fields.signed_number();
      if (fields.field() == kMapValue) entry.value = fields.bytes();
    }
    note_damage(fields, "a table of names");
    return entry;
  }

  void add_event_name(std::string_view bytes) {
    const Entry entry = map_entry(bytes);
    EventName& event = event_names_[entry.key];
    ProtobufReader fields(entry.value);
    while (fields.next()) {
      if (fields.field() == metadata_field::kName) event.name = fields.bytes();
      if (fields.field() == metadata_field::kDisplayName) event.display_name = fields.bytes();
      if (fields.field() == metadata_field::kStats) event.stats.push_back(fields.bytes());
    }
    note_damage(fields, "the name of an event");
  }

  void add_stat_name(std::string_view bytes) {
    const Entry entry = map_entry(bytes);
    ProtobufReader fields(entry.value);
    while (fields.next()) {
      if (fields.field() == metadata_field::kName) stat_names_[entry.key] = fields.bytes();
    }
    note_damage(fields, "the name of a value");
  }

  void read_line(std::string_view bytes) {
    XLine line;
    ProtobufReader fields(bytes);
    while (fields.next()) {
      if (fields.field() == line_field::kId) line.id = fields.signed_number();
      if (fields.field() == line_field::kName) line.name = fields.bytes();
      if (fields.field() == line_field::kTimestamp_ns) line.begin_ns = fields.signed_number();
    }
    note_damage(fields, "a line");
    line.derived = plane_.name.starts_with(kGpu) &&
                   std::find(kDerivedLines.begin(), kDerivedLines.end(), line.name) != kDerivedLines.end();
    if (!visitor_.on_line(line)) return;
    ProtobufReader events(bytes);
    while (events.next()) {
      if (events.field() == line_field::kEvents) read_event(events.bytes(), line.begin_ns);
    }
  }

  void read_event(std::string_view bytes, std::int64_t line_begin_ns) {
    stats_.clear();
    XEvent event{.begin_ns = line_begin_ns};
    std::int64_t metadata = 0;
    ProtobufReader fields(bytes);
    while (fields.next()) {
      if (fields.field() == event_field::kMetadata) metadata = fields.signed_number();
      if (fields.field() == event_field::kOffset_ps) {
        event.begin_ns = later_by(line_begin_ns, fields.signed_number());
      }
      if (fields.field() == event_field::kDuration_ps) event.duration_ps = fields.signed_number();
      if (fields.field() == event_field::kStats) add_stat(fields.bytes());
    }
    note_damage(fields, "an event");
    if (event.duration_ps < 0 || event.duration_ps > kLongest_ps) {
      diagnostics_.add(
          {"damaged_trace", 1, "a trace of the framework's profiler has an event of impossible length", ""});
      return;
    }
    if (const auto known = event_names_.find(metadata); known != event_names_.end()) {
      event.name = known->second.name;
      event.display_name = known->second.display_name;
      for (const std::string_view stat : known->second.stats) add_stat(stat);
    }
    event.stats = stats_;
    visitor_.on_event(event);
  }

  std::string_view stat_name(std::int64_t metadata) const {
    const auto known = stat_names_.find(metadata);
    return known == stat_names_.end() ? std::string_view() : known->second;
  }

  void add_stat(std::string_view bytes) {
    XStat stat;
    ProtobufReader fields(bytes);
    while (fields.next()) {
      switch (fields.field()) {
        case stat_field::kMetadata:
          stat.name = stat_name(fields.signed_number());
          break;
        case stat_field::kDouble:
          stat.value = fields.real();
          break;
        case stat_field::kUnsigned:
          stat.value = fields.unsigned_number();
          break;
        case stat_field::kSigned:
          stat.value = fields.signed_number();
          break;
        case stat_field::kText:
        case stat_field::kBytes:
          stat.value = fields.bytes();
          break;
        case stat_field::kReference:
          stat.value = stat_name(fields.signed_number());
          break;
        default:
          break;
      }
    }
    note_damage(fields, "a value");
    stats_.push_back(stat);
  }

  std::string_view bytes_;
  XPlaneVisitor& visitor_;
  Diagnostics& diagnostics_;
  XPlane plane_;
  std::vector<std::string_view> plane_stats_;
  std::unordered_map<std::int64_t, EventName> event_names_;
  std::unordered_map<std::int64_t, std::string_view> stat_names_;
  std::vector<XStat> stats_;  // of the present event
};

}  // namespace

std::string_view XStat::text() const {
  const auto* const held = std::get_if<std::string_view>(&value);
  return held == nullptr ? std::string_view() : *held;
}

std::optional<std::int64_t> XStat::integer() const {
  if (const auto* const held = std::get_if<std::int64_t>(&value)) return *held;
  const auto* const held = std::get_if<std::uint64_t>(&value);
  if (held == nullptr || *held > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<std::int64_t>(*held);
}

std::string_view text_of(std::span<const XStat> stats, std::string_view name) {
  const auto found = std::find_if(stats.begin(), stats.end(), [&](const XStat& known) { return known.name == name; });
  return found == stats.end() ? std::string_view() : found->text();
}

std::optional<std::int64_t> integer_of(std::span<const XStat> stats, std::string_view name) {
  const auto found = std::find_if(stats.begin(), stats.end(), [&](const XStat& known) { return known.name == name; });
  return found == stats.end() ? std::nullopt : found->integer();
}

Diagnostics read_xplane(std::string_view bytes, XPlaneVisitor& visitor) {
  Diagnostics diagnostics;
  ProtobufReader programs(bytes);
  while (programs.next()) {
    if (programs.field() != space_field::kPlanes || name_of_plane(programs.bytes()) != kPrograms) continue;
    PlaneReading(programs.bytes(), visitor, diagnostics).tell_programs();
  }
  std::size_t notes = 0;
  ProtobufReader fields(bytes);
  while (fields.next()) {
    if (fields.field() == space_field::kPlanes) PlaneReading(fields.bytes(), visitor, diagnostics).run();
    const bool is_note = fields.field() == space_field::kErrors || fields.field() == space_field::kWarnings;
    if (is_note && ++notes <= kMostNotes) {
      diagnostics.add({"framework_profiler", 1, "the framework's profiler says: " + quoted(fields.bytes()), ""});
    }
  }
  if (fields.damaged()) {
    diagnostics.add({"damaged_trace", 1,
                     "a trace of the framework's profiler is damaged: its end is missing, and with it all of the plane "
                     "that it cuts",
                     "profile again, and let the program stop the profiler before it ends"});
  }
  return diagnostics;
}

}  // namespace joulemap::ingest
