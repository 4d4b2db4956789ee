// SPDX-License-Identifier: Apache-2.0
//
// LaunchIndex: finds the call that launched a kernel, and with it the scope and training step that the kernel
// belongs to. The constructor may run while another thread assigns scopes to thread events; `find_launch` requires that
// this is finished (TraceEvent::detail of thread events is then their scope). Uses 20 bytes per runtime call. Borrows
// the events.
//
// - The launch is the runtime call with the kernel's correlation id. Ids repeat, so it is the last such call that began
//   before the kernel; if none did because clocks disagree, the first.
// - If there is no such call, or it is outside of every scope, it is the last operation before the kernel with its
//   external id.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ingest/scope_assignment/event_order.h"
#include "ingest/trace.h"

namespace joulemap::ingest {

struct KernelLaunch {
  std::uint32_t scope = 0;
  std::int64_t time_ns = 0;
};

class LaunchIndex {
 public:
  LaunchIndex(const Trace& trace, const EventOrder& order);
  std::optional<KernelLaunch> find_launch(const TraceEvent& kernel) const;

 private:
  struct LaunchEvent {
    std::uint32_t id;
    std::uint32_t event;  // event number
    std::int64_t start_ns;
  };
  // Events by id, then by time. Ids grow nearly evenly, so a bucket contains about one entry.
  class EventsById {
   public:
    EventsById() = default;
    explicit EventsById(const std::vector<LaunchEvent>& launch_events);
    const LaunchEvent* find(std::uint32_t id, std::int64_t start_ns) const;

   private:
    std::vector<LaunchEvent> launch_events_;
    std::vector<std::uint32_t>
        bucket_begins_;  // index in launch_events_ where each bucket begins; the last is launch_events_.size()
    std::uint32_t smallest_id_ = 0;
    unsigned bucket_shift_ = 0;  // (id - smallest_id_) >> bucket_shift_ is the bucket
  };

  const EventOrder& order_;
  EventsById calls_by_correlation_;       // by correlation id
  EventsById operations_by_external_id_;  // by external id, for kernels without a runtime call
};

}  // namespace joulemap::ingest
