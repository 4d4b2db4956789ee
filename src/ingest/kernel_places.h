// SPDX-License-Identifier: Apache-2.0
//
// KernelPlaces: from the calls that launched work to the work: which place and which step a kernel belongs to. Made after
// the threads were placed (TraceEvent::detail of their events is their place). 16 bytes a call of the runtime. Pure.
//
// - The call of the kernel's correlation: ids repeat, so the last one that began before the kernel did; where clocks
//   disagree and none did, the first.
// - Else the operation of its external id, the last one before the kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ingest/event_order.h"
#include "ingest/trace.h"

namespace joulemap::ingest {

struct Launch {
  std::uint32_t place = 0;
  std::int64_t time_ns = 0;
};

class KernelPlaces {
 public:
  explicit KernelPlaces(const Trace& trace);
  std::optional<Launch> launch_of(const TraceEvent& kernel) const;

 private:
  struct Entry {
    std::uint32_t id;
    std::uint32_t place;
    std::int64_t start_ns;
  };
  static void sort(std::vector<Entry>& entries);
  static const Entry* find(const std::vector<Entry>& entries, std::uint32_t id, std::int64_t start_ns);

  std::vector<Entry> calls_;       // by correlation, then by time
  std::vector<Entry> operations_;  // by external id, then by time: of kernels that have no call
};

}  // namespace joulemap::ingest
