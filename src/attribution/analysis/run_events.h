// SPDX-License-Identifier: Apache-2.0
//
// RunEvents: metrics with their times, and named regions, that the recorded program reported while it ran. Collected
// while reading, in bounded memory: beyond a limit it keeps every second metric value, then every fourth, and so on.
// Pure; CLOCK_MONOTONIC of the source's machine, in nanoseconds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attribution/ledger/time_curve.h"
#include "model/recorded.h"

namespace joulemap::attribution {

struct MetricValue {
  std::int64_t time_ns = 0;
  std::optional<std::int64_t> step;
  double value = 0;
};

// Values of one metric of one process.
struct MetricValues {
  std::vector<MetricValue> values;  // every `stride`-th value
  std::uint64_t stride = 1;
  std::uint64_t count = 0;
  double sum = 0;

  void add(const MetricValue& value);
};

struct NamedSpan {
  std::string name;
  TimeSpan span;
};

class RunEvents {
 public:
  using Key = std::pair<std::uint32_t, std::string>;  // source, name

  void add(std::uint32_t source, const Metric& metric);
  void add(std::uint32_t source, const Mark& mark);

  const std::map<Key, MetricValues>& metrics() const { return metrics_; }
  // Regions that have ended, by source, without those of probing and dithering.
  const std::map<std::uint32_t, std::vector<NamedSpan>>& regions() const { return regions_; }

 private:
  std::map<Key, MetricValues> metrics_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, NamedSpan> open_regions_;  // by source and the mark's id
  std::map<std::uint32_t, std::vector<NamedSpan>> regions_;
};

}  // namespace joulemap::attribution
