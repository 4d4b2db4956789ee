// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_reader.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "formats/protobuf.h"
#include "ingest/xplane/id_table.h"

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
    for (const EventName& event : event_names_.entries()) {
      stats_.clear();
      for (const std::string_view stat : event.stats) add_stat(stat, Which::all);
      for (const XStat& stat : stats_) {
        if (stat.name == kHloProto) visitor_.on_program(event.name, stat.text());
      }
    }
  }

  void run() {
    read_tables();
    for (const std::string_view stat : plane_stats_) add_stat(stat, Which::all);
    plane_.stats = stats_;
    if (!visitor_.on_plane(plane_)) return;
    for (EventName& event : event_names_.entries()) event.wanted = visitor_.on_name(event.name);
    ProtobufReader fields(bytes_);
    while (fields.next()) {
      if (fields.field() == plane_field::kLines) read_line(fields.bytes());
    }
  }

  // Of a plane that the end of the file cuts: the names of its events came last, so none of them can be told.
  void tell_lost_events() {
    ProtobufReader fields(bytes_);
    while (fields.next()) {
      if (fields.field() == plane_field::kLines) lose_events_of(fields.bytes());
    }
    if (fields.field() == plane_field::kLines) lose_events_of(fields.cut());
  }

 private:
  void lose_events_of(std::string_view line) {
    ProtobufReader fields(line);
    while (fields.next()) {
      if (fields.field() == line_field::kEvents) visitor_.on_damaged();
    }
  }

  struct EventName {
    std::string_view name;
    std::string_view display_name;
    std::vector<std::string_view> stats;
    bool wanted = true;
  };
  struct StatName {
    std::string_view name;
    XStatName known = XStatName::other;
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
      if (fields.field() == metadata_field::kName) {
        stat_names_[entry.key] = {fields.bytes(), xstat_named(fields.bytes())};
      }
    }
    note_damage(fields, "the name of a value");
  }

  void read_line(std::string_view bytes) {
    const XLine line = line_itself(bytes);
    if (!visitor_.on_line(line)) return;
    ProtobufReader fields(bytes);
    while (fields.next()) {
      if (fields.field() == line_field::kEvents) read_event(fields.bytes(), line.begin_ns);
    }
    note_damage(fields, "a line");
  }

  // Writers put what describes a line before its events, so that these need not be gone through for it.
  XLine line_itself(std::string_view bytes) const {
    XLine line;
    ProtobufReader fields(bytes);
    while (fields.next()) {
      if (fields.field() == line_field::kEvents && line.begin_ns != 0 && !line.name.empty()) break;
      if (fields.field() == line_field::kId) line.id = fields.signed_number();
      if (fields.field() == line_field::kName) line.name = fields.bytes();
      if (fields.field() == line_field::kTimestamp_ns) line.begin_ns = fields.signed_number();
    }
    line.derived = plane_.name.starts_with(kGpu) &&
                   std::find(kDerivedLines.begin(), kDerivedLines.end(), line.name) != kDerivedLines.end();
    return line;
  }

  void read_event(std::string_view bytes, std::int64_t line_begin_ns) {
    stats_.clear();
    known_stats_ = 0;
    XEvent event{.begin_ns = line_begin_ns};
    const EventName* named = nullptr;
    ProtobufReader fields(bytes);
    while (fields.next()) {
      switch (fields.field()) {
        case event_field::kMetadata:
          if (const auto number = event_names_.find(fields.signed_number())) {
            named = &event_names_.at(*number);
            event.name_number = *number + 1;
            if (!named->wanted) return visitor_.on_unwanted();
          }
          break;
        case event_field::kOffset_ps:
          event.begin_ns = later_by(line_begin_ns, fields.signed_number());
          break;
        case event_field::kDuration_ps:
          event.duration_ps = fields.signed_number();
          break;
        case event_field::kStats:
          add_stat(fields.bytes(), Which::known);
          break;
        default:
          break;
      }
    }
    note_damage(fields, "an event");
    if (event.duration_ps < 0 || event.duration_ps > kLongest_ps) {
      diagnostics_.add(
          {"damaged_trace", 1, "a trace of the framework's profiler has an event of impossible length", ""});
      return visitor_.on_damaged();
    }
    if (named != nullptr) {
      event.name = named->name;
      event.display_name = named->display_name;
      for (const std::string_view stat : named->stats) add_stat(stat, Which::known);
    }
    event.stats = stats_;
    event.known_stats = known_stats_;
    visitor_.on_event(event);
  }

  StatName stat_name(std::int64_t metadata) const {
    const auto number = stat_names_.find(metadata);
    return number ? stat_names_.at(*number) : StatName();
  }

  enum class Which : std::uint8_t { all, known };
  void add_stat(std::string_view bytes, Which which) {
    XStat stat;
    ProtobufReader fields(bytes);
    while (fields.next()) {
      switch (fields.field()) {
        case stat_field::kMetadata: {
          const StatName name = stat_name(fields.signed_number());
          if (which == Which::known && name.known == XStatName::other) return;
          stat.name = name.name;
          stat.known = name.known;
          break;
        }
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
          stat.value = stat_name(fields.signed_number()).name;
          break;
        default:
          break;
      }
    }
    note_damage(fields, "a value");
    known_stats_ |= stat.known == XStatName::other ? 0U : 1U << static_cast<unsigned>(stat.known);
    stats_.push_back(stat);
  }

  std::string_view bytes_;
  XPlaneVisitor& visitor_;
  Diagnostics& diagnostics_;
  XPlane plane_;
  std::vector<std::string_view> plane_stats_;
  IdTable<EventName> event_names_;
  IdTable<StatName> stat_names_;
  std::vector<XStat> stats_;  // of the present event
  std::uint32_t known_stats_ = 0;
};

}  // namespace

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
    if (fields.field() == space_field::kPlanes) PlaneReading(fields.cut(), visitor, diagnostics).tell_lost_events();
    diagnostics.add({"damaged_trace", 1,
                     "a trace of the framework's profiler is damaged: its end is missing, and with it all of the plane "
                     "that it cuts",
                     "profile again, and let the program stop the profiler before it ends"});
  }
  return diagnostics;
}

}  // namespace joulemap::ingest
