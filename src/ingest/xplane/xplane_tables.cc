// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_tables.h"

#include <string>

namespace joulemap::ingest {
namespace {

using formats::ProtobufReader;

namespace plane_field {
constexpr std::uint32_t kIdField = 1, kNameField = 2, kEventMetadataField = 4, kStatMetadataField = 5, kStatsField = 6;
}
namespace stat_field {
constexpr std::uint32_t kMetadataField = 1, kDoubleField = 2, kUnsignedField = 3, kSignedField = 4, kTextField = 5,
                        kBytesField = 6, kReferenceField = 7;
}
namespace metadata_field {
constexpr std::uint32_t kNameField = 2, kDisplayNameField = 4, kStatsField = 5;
}
constexpr std::uint32_t kMapKeyField = 1, kMapValueField = 2;

XPlaneKind plane_kind_of(std::string_view name) {
  if (name.starts_with("/device:")) return XPlaneKind::device;
  if (name == "/host:CPU" || name == "/host:python-tracer") return XPlaneKind::host;
  // Calls of the GPU's driver; most writers add them to the threads of /host:CPU.
  if (name == "/host:CUPTI" || name == "/host:ROCTRACER") return XPlaneKind::host;
  return XPlaneKind::metadata;
}

struct MapEntry {
  std::int64_t key = 0;
  std::string_view value;
};

MapEntry read_map_entry(std::string_view bytes, Diagnostics& damage) {
  MapEntry entry;
  ProtobufReader fields(bytes);
  while (fields.next()) {
    if (fields.field() == kMapKeyField) entry.key = fields.signed_number();
    if (fields.field() == kMapValueField) entry.value = fields.bytes();
  }
  report_xplane_damage(fields, "a table of names", damage);
  return entry;
}

}  // namespace

void report_xplane_damage(const ProtobufReader& fields, std::string_view damaged_part, Diagnostics& damage) {
  if (!fields.damaged()) return;
  damage.add({"damaged_trace", 1, "a trace of the framework's profiler is damaged: " + std::string(damaged_part), ""});
}

XPlaneTables::XPlaneTables(std::string_view plane, Diagnostics& damage) : bytes_(plane) {
  std::vector<std::string_view> plane_stats;
  ProtobufReader fields(bytes_);
  while (fields.next()) {
    if (fields.field() == plane_field::kIdField) plane_.id = fields.signed_number();
    if (fields.field() == plane_field::kNameField) plane_.name = fields.bytes();
    if (fields.field() == plane_field::kEventMetadataField) add_event_name(fields.bytes(), damage);
    if (fields.field() == plane_field::kStatMetadataField) add_stat_name(fields.bytes(), damage);
    if (fields.field() == plane_field::kStatsField) plane_stats.push_back(fields.bytes());
  }
  report_xplane_damage(fields, "a plane", damage);
  plane_.kind = plane_kind_of(plane_.name);
  for (const std::string_view stat_bytes : plane_stats)
    read_stat(stat_bytes, StatFilter::all, plane_stats_.emplace_back(), damage);
  plane_.stats = plane_stats_;
}

void XPlaneTables::add_event_name(std::string_view bytes, Diagnostics& damage) {
  const MapEntry entry = read_map_entry(bytes, damage);
  EventName& event = event_names_[entry.key];
  ProtobufReader fields(entry.value);
  while (fields.next()) {
    if (fields.field() == metadata_field::kNameField) event.name = fields.bytes();
    if (fields.field() == metadata_field::kDisplayNameField) event.display_name = fields.bytes();
    if (fields.field() == metadata_field::kStatsField) event.stats.push_back(fields.bytes());
  }
  report_xplane_damage(fields, "the name of an event", damage);
}

void XPlaneTables::add_stat_name(std::string_view bytes, Diagnostics& damage) {
  const MapEntry entry = read_map_entry(bytes, damage);
  ProtobufReader fields(entry.value);
  while (fields.next()) {
    if (fields.field() == metadata_field::kNameField) {
      stat_names_[entry.key] = {fields.bytes(), parse_xstat_name(fields.bytes())};
    }
  }
  report_xplane_damage(fields, "the name of a value", damage);
}

bool XPlaneTables::read_stat(std::string_view bytes, StatFilter stat_filter, XStat& stat, Diagnostics& damage) const {
  ProtobufReader fields(bytes);
  while (fields.next()) {
    switch (fields.field()) {
      case stat_field::kMetadataField: {
        const StatName* const name = this->stat_name(fields.signed_number());
        if (stat_filter == StatFilter::known && (name == nullptr || name->known_name == XStatName::other)) return false;
        stat.name = name == nullptr ? std::string_view() : name->name;
        stat.stat_name = name == nullptr ? XStatName::other : name->known_name;
        break;
      }
      case stat_field::kDoubleField:
        stat.value = fields.double_value();
        break;
      case stat_field::kUnsignedField:
        stat.value = fields.unsigned_number();
        break;
      case stat_field::kSignedField:
        stat.value = fields.signed_number();
        break;
      case stat_field::kTextField:
      case stat_field::kBytesField:
        stat.value = fields.bytes();
        break;
      case stat_field::kReferenceField: {
        const StatName* const text = this->stat_name(fields.signed_number());
        stat.value = text == nullptr ? std::string_view() : text->name;
        break;
      }
      default:
        break;
    }
  }
  report_xplane_damage(fields, "a value", damage);
  return true;
}

}  // namespace joulemap::ingest
