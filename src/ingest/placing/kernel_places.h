// SPDX-License-Identifier: Apache-2.0
//
// KernelPlaces: from the calls that launched work to the work: which place and which step a kernel belongs to. May be made
// while threads are still placed, and is asked once they were (TraceEvent::detail of their events is then their place). 20
// bytes a call of the runtime. Borrows the events.
//
// - The call of the kernel's correlation: ids repeat, so the last one that began before the kernel did; where clocks
//   disagree and none did, the first.
// - Else the operation of its external id, the last one before the kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ingest/placing/event_order.h"
#include "ingest/trace.h"

namespace joulemap::ingest {

struct Launch {
  std::uint32_t place = 0;
  std::int64_t time_ns = 0;
};

class KernelPlaces {
 public:
  KernelPlaces(const Trace& trace, const EventOrder& order);
  std::optional<Launch> launch_of(const TraceEvent& kernel) const;

 private:
  struct Entry {
    std::uint32_t id;
    std::uint32_t event;  // its number
    std::int64_t start_ns;
  };
  // Events by id, then by time. Ids grow nearly evenly: the first look is at a bucket of about one.
  class Index {
   public:
    Index() = default;
    explicit Index(const std::vector<Entry>& entries);
    const Entry* find(std::uint32_t id, std::int64_t start_ns) const;

   private:
    std::vector<Entry> entries_;
    std::vector<std::uint32_t> begins_;  // of each bucket in entries_, and their end
    std::uint32_t smallest_id_ = 0;
    unsigned shift_ = 0;  // from an id beyond the smallest to its bucket
  };

  const EventOrder& order_;
  Index calls_;       // by correlation
  Index operations_;  // by external id: of kernels that have no call
};

}  // namespace joulemap::ingest
