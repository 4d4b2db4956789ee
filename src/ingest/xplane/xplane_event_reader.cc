// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_event_reader.h"

#include <span>

#include "formats/protobuf.h"
#include "formats/varint.h"

namespace joulemap::ingest {
namespace {

using formats::decode_varint;
using formats::ProtobufReader;

constexpr std::uint32_t kLineEventsField = 4;
namespace event_field {
constexpr std::uint32_t kMetadataField = 1, kOffsetField_ps = 2, kDurationField_ps = 3, kStatsField = 4;
}
namespace stat_field {
constexpr std::uint32_t kMetadataField = 1, kUnsignedField = 3, kSignedField = 4, kTextField = 5, kBytesField = 6,
                        kReferenceField = 7;
}
// The one-byte protobuf tags of a varint field and of a length-delimited field.
constexpr unsigned char varint_field_tag(std::uint32_t field) { return static_cast<unsigned char>(field << 3); }
constexpr unsigned char bytes_field_tag(std::uint32_t field) { return static_cast<unsigned char>(field << 3 | 2); }

constexpr std::int64_t kPicosecondsPerNanosecond = 1000;
// One week. Longer events are invalid.
constexpr std::int64_t kLongest_ps = 604'800 * std::int64_t{1'000'000'000'000};

// The sum in nanoseconds; time_ns itself if the sum overflows, as only in invalid files.
std::int64_t add_offset_ps(std::int64_t time_ns, std::int64_t offset_ps) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(time_ns, offset_ps / kPicosecondsPerNanosecond, &sum) ? time_ns : sum;
}

}  // namespace

void XEventReader::read(const XSegment& segment, Diagnostics& damage) {
  ProtobufReader fields(segment.line_bytes);
  while (fields.next()) {
    if (fields.field() == kLineEventsField) read_event(fields.bytes(), segment, damage);
  }
  report_xplane_damage(fields, "a line", damage);
}

void XEventReader::read_event(std::string_view bytes, const XSegment& segment, Diagnostics& damage) {
  const XPlaneTables& tables = *segment.tables;
  EventFields fields;
  clear_stats();
  ParseOutcome parse_outcome =
      try_read_event_fast(bytes, segment.line_bytes.data() + segment.line_bytes.size(), tables, fields);
  if (parse_outcome == ParseOutcome::needs_slow_path) {
    fields = {};
    clear_stats();
    parse_outcome = read_event_by_field(bytes, tables, fields, damage);
  }
  if (parse_outcome == ParseOutcome::unselected) return visitor_.on_skipped_event();
  if (fields.duration_ps < 0 || fields.duration_ps > kLongest_ps) {
    damage.add({"damaged_trace", 1, "a trace of the framework's profiler contains an event of impossible length", ""});
    return visitor_.on_damaged_event();
  }
  event_.name = event_.display_name = {};
  if (fields.event_name != nullptr) {
    event_.name = fields.event_name->name;
    event_.display_name = fields.event_name->display_name;
    for (const std::string_view stat_bytes : fields.event_name->stats) add_stat(stat_bytes, tables, damage);
  }
  event_.name_number = fields.name_number;
  event_.begin_ns = add_offset_ps(segment.line.begin_ns, fields.offset_ps);
  event_.duration_ps = fields.duration_ps;
  event_.stats = std::span(stat_buffer_).first(used_stat_count_);
  visitor_.on_event(event_);
}

XEventReader::ParseOutcome XEventReader::try_read_event_fast(std::string_view bytes, const char* readable,
                                                             const XPlaneTables& tables, EventFields& fields) {
  const char* read_position = bytes.data();
  const char* const end = read_position + bytes.size();
  while (read_position != end) {
    const auto tag = static_cast<unsigned char>(*read_position);
    std::uint64_t number = 0;
    read_position = decode_varint(read_position + 1, end, readable, number);
    if (read_position == nullptr) return ParseOutcome::needs_slow_path;
    switch (tag) {
      case varint_field_tag(event_field::kMetadataField):
        fields.event_name = tables.event_name(static_cast<std::int64_t>(number), fields.name_number);
        if (fields.event_name == nullptr) return ParseOutcome::needs_slow_path;
        if (!fields.event_name->are_events_read) return ParseOutcome::unselected;
        break;
      case varint_field_tag(event_field::kOffsetField_ps):
        fields.offset_ps = static_cast<std::int64_t>(number);
        break;
      case varint_field_tag(event_field::kDurationField_ps):
        fields.duration_ps = static_cast<std::int64_t>(number);
        break;
      case bytes_field_tag(event_field::kStatsField): {
        if (number > static_cast<std::uint64_t>(end - read_position)) return ParseOutcome::needs_slow_path;
        if (!try_read_stat_fast({read_position, static_cast<std::size_t>(number)}, readable, tables))
          return ParseOutcome::needs_slow_path;
        read_position += number;
        break;
      }
      default:
        return ParseOutcome::needs_slow_path;
    }
  }
  return ParseOutcome::complete;
}

// Reads a stat that consists of an id and a value, in this order. Returns false if it must be read field by field.
bool XEventReader::try_read_stat_fast(std::string_view bytes, const char* readable, const XPlaneTables& tables) {
  const char* read_position = bytes.data();
  const char* const end = read_position + bytes.size();
  if (read_position == end ||
      static_cast<unsigned char>(*read_position) != varint_field_tag(stat_field::kMetadataField))
    return false;
  std::uint64_t number = 0;
  read_position = decode_varint(read_position + 1, end, readable, number);
  if (read_position == nullptr || read_position == end) return false;
  const XPlaneTables::StatName* const name = tables.stat_name(static_cast<std::int64_t>(number));
  if (name == nullptr || name->known_name == XStatName::other) return true;
  const auto tag = static_cast<unsigned char>(*read_position);
  read_position = decode_varint(read_position + 1, end, readable, number);
  if (read_position == nullptr) return false;
  XStat& stat = append_stat();
  stat.name = name->name;
  stat.stat_name = name->known_name;
  switch (tag) {
    case varint_field_tag(stat_field::kUnsignedField):
      stat.value = number;
      break;
    case varint_field_tag(stat_field::kSignedField):
      stat.value = static_cast<std::int64_t>(number);
      break;
    case varint_field_tag(stat_field::kReferenceField): {
      const XPlaneTables::StatName* const text = tables.stat_name(static_cast<std::int64_t>(number));
      stat.value = text == nullptr ? std::string_view() : text->name;
      break;
    }
    case bytes_field_tag(stat_field::kTextField):
    case bytes_field_tag(stat_field::kBytesField):
      if (number > static_cast<std::uint64_t>(end - read_position)) return false;
      stat.value = std::string_view(read_position, static_cast<std::size_t>(number));
      read_position += number;
      break;
    default:
      return false;
  }
  index_last_stat(name->known_name);
  return read_position == end;
}

XEventReader::ParseOutcome XEventReader::read_event_by_field(std::string_view bytes, const XPlaneTables& tables,
                                                             EventFields& event, Diagnostics& damage) {
  ProtobufReader fields(bytes);
  while (fields.next()) {
    switch (fields.field()) {
      case event_field::kMetadataField: {
        std::uint32_t number = 0;
        const XPlaneTables::EventName* const event_name = tables.event_name(fields.signed_number(), number);
        if (event_name == nullptr) break;
        event.event_name = event_name;
        event.name_number = number;
        if (!event_name->are_events_read) return ParseOutcome::unselected;
        break;
      }
      case event_field::kOffsetField_ps:
        event.offset_ps = fields.signed_number();
        break;
      case event_field::kDurationField_ps:
        event.duration_ps = fields.signed_number();
        break;
      case event_field::kStatsField:
        add_stat(fields.bytes(), tables, damage);
        break;
      default:
        break;
    }
  }
  report_xplane_damage(fields, "an event", damage);
  return ParseOutcome::complete;
}

void XEventReader::add_stat(std::string_view bytes, const XPlaneTables& tables, Diagnostics& damage) {
  XStat stat;
  if (!tables.read_stat(bytes, XPlaneTables::StatFilter::known, stat, damage)) return;
  append_stat() = stat;
  index_last_stat(stat.stat_name);
}

void XEventReader::clear_stats() {
  used_stat_count_ = 0;
  event_.known_stat_bits = 0;
}

// Reuses the storage of previous events.
XStat& XEventReader::append_stat() {
  if (used_stat_count_ == stat_buffer_.size()) stat_buffer_.emplace_back();
  return stat_buffer_[used_stat_count_++];
}

// Makes the stat appended last the value of `stat_name`. Of several, the first one counts.
void XEventReader::index_last_stat(XStatName stat_name) {
  if (stat_name == XStatName::other || event_.has_stat(stat_name)) return;
  event_.known_stat_bits |= 1U << static_cast<unsigned>(stat_name);
  event_.stat_index[static_cast<std::size_t>(stat_name)] = static_cast<std::uint32_t>(used_stat_count_ - 1);
}

}  // namespace joulemap::ingest
