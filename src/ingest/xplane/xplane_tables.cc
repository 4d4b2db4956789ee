// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_tables.h"

#include <string>

namespace joulemap::ingest {
namespace {

using formats::ProtobufReader;

namespace plane_field {
constexpr std::uint32_t kId = 1, kName = 2, kEventMetadata = 4, kStatMetadata = 5, kStats = 6;
}
namespace stat_field {
constexpr std::uint32_t kMetadata = 1, kDouble = 2, kUnsigned = 3, kSigned = 4, kText = 5, kBytes = 6, kReference = 7;
}
namespace metadata_field {
constexpr std::uint32_t kName = 2, kDisplayName = 4, kStats = 5;
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

void report_xplane_damage(const ProtobufReader& fields, std::string_view what, Diagnostics& damage) {
  if (!fields.damaged()) return;
  damage.add({"damaged_trace", 1, "a trace of the framework's profiler is damaged: " + std::string(what), ""});
}

XPlaneTables::XPlaneTables(std::string_view plane, Diagnostics& damage) : bytes_(plane) {
  std::vector<std::string_view> stats;
  ProtobufReader fields(bytes_);
  while (fields.next()) {
    if (fields.field() == plane_field::kId) plane_.id = fields.signed_number();
    if (fields.field() == plane_field::kName) plane_.name = fields.bytes();
    if (fields.field() == plane_field::kEventMetadata) add_event_name(fields.bytes(), damage);
    if (fields.field() == plane_field::kStatMetadata) add_stat_name(fields.bytes(), damage);
    if (fields.field() == plane_field::kStats) stats.push_back(fields.bytes());
  }
  report_xplane_damage(fields, "a plane", damage);
  plane_.kind = plane_kind_of(plane_.name);
  for (const std::string_view stat : stats) read_stat(stat, StatFilter::all, plane_stats_.emplace_back(), damage);
  plane_.stats = plane_stats_;
}

void XPlaneTables::add_event_name(std::string_view bytes, Diagnostics& damage) {
  const MapEntry entry = read_map_entry(bytes, damage);
  EventName& event = event_names_[entry.key];
  ProtobufReader fields(entry.value);
  while (fields.next()) {
    if (fields.field() == metadata_field::kName) event.name = fields.bytes();
    if (fields.field() == metadata_field::kDisplayName) event.display_name = fields.bytes();
    if (fields.field() == metadata_field::kStats) event.stats.push_back(fields.bytes());
  }
  report_xplane_damage(fields, "the name of an event", damage);
}

void XPlaneTables::add_stat_name(std::string_view bytes, Diagnostics& damage) {
  const MapEntry entry = read_map_entry(bytes, damage);
  ProtobufReader fields(entry.value);
  while (fields.next()) {
    if (fields.field() == metadata_field::kName) {
      stat_names_[entry.key] = {fields.bytes(), parse_xstat_name(fields.bytes())};
    }
  }
  report_xplane_damage(fields, "the name of a value", damage);
}

bool XPlaneTables::read_stat(std::string_view bytes, StatFilter which, XStat& stat, Diagnostics& damage) const {
  ProtobufReader fields(bytes);
  while (fields.next()) {
    switch (fields.field()) {
      case stat_field::kMetadata: {
        const StatName* const name = this->stat_name(fields.signed_number());
        if (which == StatFilter::known && (name == nullptr || name->known_name == XStatName::other)) return false;
        stat.name = name == nullptr ? std::string_view() : name->name;
        stat.stat_name = name == nullptr ? XStatName::other : name->known_name;
        break;
      }
      case stat_field::kDouble:
        stat.value = fields.double_value();
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
      case stat_field::kReference: {
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
