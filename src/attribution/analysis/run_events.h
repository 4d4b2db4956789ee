// SPDX-License-Identifier: Apache-2.0
//
// RunEvents: what the program told about itself while it ran: metrics with their moments, and regions it named. Kept as they
// are read, in bounded memory: of very many metrics every second, then every fourth one, and so on. Pure; CLOCK_MONOTONIC
// of the source's machine, in nanoseconds.
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

struct ReportedValue {
  std::int64_t time_ns = 0;
  std::optional<std::int64_t> step;
  double value = 0;
};

// Of one metric of one process.
struct ReportedValues {
  std::vector<ReportedValue> kept;  // each `stride`-th
  std::uint64_t stride = 1;
  std::uint64_t count = 0;
  double sum = 0;

  void add(const ReportedValue& value);
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

  const std::map<Key, ReportedValues>& metrics() const { return metrics_; }
  // Of one source, closed ones; neither probing nor dithering.
  const std::map<std::uint32_t, std::vector<NamedSpan>>& regions() const { return regions_; }

 private:
  std::map<Key, ReportedValues> metrics_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, NamedSpan> open_;  // by source and the mark's id
  std::map<std::uint32_t, std::vector<NamedSpan>> regions_;
};

}  // namespace joulemap::attribution
