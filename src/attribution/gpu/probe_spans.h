// SPDX-License-Identifier: Apache-2.0
//
// ProbeSpans: when a machine's processes replayed their modules to find out what they draw, or were held up to make steps
// less equal, from the marks they left (docs/attribution.md, probing, dithering). Of several that did so together, once.
// Pure; CLOCK_MONOTONIC of that machine.
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

// The energy between two moments.
using EnergyBetween = std::function<double(std::int64_t from_ns, std::int64_t to_ns)>;

class ProbeSpans {
 public:
  explicit ProbeSpans(TimeSpan command, std::string_view region = kProbeRegion) : command_(command), region_(region) {}

  // Marks of other things are left alone.
  void add(std::uint32_t process, const Mark& mark);
  // Once all marks were added: joins those that overlap. A process that was killed meanwhile probed until the end.
  void finish();

  std::span<const TimeSpan> spans() const { return spans_; }
  bool empty() const { return spans_.empty(); }
  double time_s() const;
  double time_between_s(std::int64_t from_ns, std::int64_t to_ns) const;
  // The energy that lies in them, and in a part of the time.
  double sum_of(const EnergyBetween& energy_j) const;
  double sum_between(const EnergyBetween& energy_j, std::int64_t from_ns, std::int64_t to_ns) const;

 private:
  TimeSpan command_;
  std::string_view region_;                                           // one of model/activity.h
  std::map<std::pair<std::uint32_t, std::uint64_t>, TimeSpan> open_;  // by process and the mark's id
  std::vector<TimeSpan> spans_;
};

}  // namespace joulemap::attribution
