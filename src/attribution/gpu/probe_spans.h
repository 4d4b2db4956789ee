// SPDX-License-Identifier: Apache-2.0
//
// ProbeSpans: time spans in which processes of a machine replayed modules to measure their power (probing), or paused
// to make steps less equal (dithering). Taken from the marks they recorded (docs/explanation/attribution.md).
// Overlapping spans of several processes count once. Pure; ns of that machine's CLOCK_MONOTONIC.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "model/activity.h"
#include "model/recorded.h"
#include "model/time_points.h"

namespace joulemap::attribution {

// The energy between two times, J.
using EnergyFunction = std::function<double(std::int64_t from_ns, std::int64_t to_ns)>;

class ProbeSpans {
 public:
  explicit ProbeSpans(TimeSpan command, std::string_view region = kProbeRegionName)
      : command_span_(command), region_name_(region) {}

  // Ignores marks of other regions.
  void add(std::uint32_t process, const Mark& mark);
  // Call once, after all marks were added: joins overlapping spans. A span without an end mark, of a process that was
  // killed, lasts until the end of the command.
  void finish();

  std::span<const TimeSpan> spans() const { return spans_; }
  bool empty() const { return spans_.empty(); }
  double total_s() const;
  double time_in_spans_between_s(std::int64_t from_ns, std::int64_t to_ns) const;
  // The energy within the spans, J: in total, and between two times.
  double energy_in_spans(const EnergyFunction& energy_j) const;
  double energy_in_spans_between(const EnergyFunction& energy_j, std::int64_t from_ns, std::int64_t to_ns) const;

 private:
  TimeSpan command_span_;
  std::string_view region_name_;  // kProbeRegionName or kDitherRegionName
  std::map<std::pair<std::uint32_t, std::uint64_t>, TimeSpan> spans_by_region_id_;  // by process and the mark's id
  std::vector<TimeSpan> spans_;
};

}  // namespace joulemap::attribution
