// SPDX-License-Identifier: Apache-2.0
//
// XPlaneTables: maps the ids in one plane of a profile to names of events and of values, and holds the plane itself.
// Parsed before the events, which precede the tables in the file. Views point into the bytes given. One thread builds
// it; after the visitor has selected the names, any thread may read it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/protobuf.h"
#include "ingest/xplane/id_table.h"
#include "ingest/xplane/xplane_reader.h"
#include "model/diagnostics.h"

namespace joulemap::ingest {

class XPlaneTables {
 public:
  XPlaneTables(std::string_view plane, Diagnostics& damage);
  XPlaneTables(const XPlaneTables&) = delete;
  XPlaneTables& operator=(const XPlaneTables&) = delete;

  struct EventName {
    std::string_view name;
    std::string_view display_name;
    std::vector<std::string_view> stats;
    bool are_events_read = true;
  };
  struct StatName {
    std::string_view name;
    XStatName known_name = XStatName::other;
  };

  const XPlane& plane() const { return plane_; }
  std::string_view bytes() const { return bytes_; }
  std::vector<EventName>& events() { return event_names_.entries(); }
  // The name of this id; null if there is none. `find_number`: its number, counted from 1; 0 if there is none.
  const EventName* event_name(std::int64_t id, std::uint32_t& number) const {
    number = event_names_.find_number(id);
    return number == 0 ? nullptr : &event_names_.at(number - 1);
  }
  const StatName* stat_name(std::int64_t id) const {
    const std::uint32_t number = stat_names_.find_number(id);
    return number == 0 ? nullptr : &stat_names_.at(number - 1);
  }

  enum class StatFilter : std::uint8_t { all, known };
  // Reads a stat. StatFilter::known: returns false if its name is not in XStatName.
  bool read_stat(std::string_view bytes, StatFilter stat_filter, XStat& stat, Diagnostics& damage) const;

 private:
  void add_event_name(std::string_view bytes, Diagnostics& damage);
  void add_stat_name(std::string_view bytes, Diagnostics& damage);

  std::string_view bytes_;
  XPlane plane_;
  std::vector<XStat> plane_stats_;
  IdTable<EventName> event_names_;
  IdTable<StatName> stat_names_;
};

void report_xplane_damage(const formats::ProtobufReader& fields, std::string_view damaged_part, Diagnostics& damage);

}  // namespace joulemap::ingest
