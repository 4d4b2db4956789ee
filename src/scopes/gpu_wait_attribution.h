// SPDX-License-Identifier: Apache-2.0
//
// GpuWaitAttribution: finds out what a GPU waited for. While a GPU of this process is idle, the host is late: it loads
// data, launches the kernels of a layer, or returns from a synchronization. GpuWaitAttribution charges each idle gap
// between two kernels to scopes of the host:
//
// - from the end of the last kernel to the launch of the next one: to the scopes that made the host late. These need
//   not be the scopes that the host was in during the gap (scopes/host_lateness_tracker.h). A gap of 20 ms or more, and
//   a gap that no kernel ends, is charged to the scopes that the host was in during the gap;
// - from the launch to the start of that kernel: to the scope that launched it. A kernel that was launched before the
//   gap began (a queue that never ran dry) gets the whole gap: the time is dispatch latency of the device.
//
// A time in which kernels ran unrecorded (another profiler took the records) is not a gap.
//
// Kernels may be added out of order; resolve_idle_gaps() resolves the gaps before a time up to which all kernels are
// known. Not thread-safe: the caller serializes. Nanoseconds of CLOCK_MONOTONIC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "model/activity.h"
#include "model/time_points.h"
#include "scopes/host_lateness_tracker.h"

namespace joulemap {

// The host enters a scope, or begins or ends a synchronization in it.
struct HostScopeChange {
  std::int64_t time_ns = 0;
  std::uint32_t scope = 0;
  bool waits_for_gpu = false;  // true: from time_ns on, the host waits for the GPU
};

enum class WaitTracing : std::uint8_t {
  off,            // kernels are not recorded
  warm_up,        // kernels are recorded, but tracing has just begun and slows the host down: gaps are not charged
  separate_step,  // an unusual step (the first, or one whose operations are recorded): its gaps get their own activity
  on,
};

struct LaunchedKernel {
  std::uint32_t device = 0;  // ordinal in this process
  std::uint32_t queue = 0;
  std::uint32_t scope = 0;
  std::optional<std::int64_t> launch_ns = {};  // empty: unknown, taken as the end of the gap
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

class GpuWaitAttribution {
 public:
  // Edges in order of time within one call; needed only for the time in which kernels are traced.
  void add(std::span<const HostScopeChange> edges);
  void add(const LaunchedKernel& kernel);
  // Sets the mode from time_ns on; it is off at first. Call in order of time. Each call with `separate_step` begins
  // another activity. Untraced kernels that were launched earlier end by `untraced_kernels_end_ns` at the latest: from
  // then on the device is idle until the first traced kernel.
  void set_tracing(std::int64_t time_ns, WaitTracing tracing, std::int64_t untraced_kernels_end_ns);
  // From `since_ns` on, kernels may run unrecorded, until `until_ns` (INT64_MAX: until a second call for the same
  // `since_ns` gives the end). Call before the kernels that follow are settled.
  void add_lost_record_span(std::int64_t since_ns, std::int64_t until_ns);

  // Resolves all gaps that ended before `until_ns`, and of a gap that is still open, all but the last 10 s.
  void resolve_idle_gaps(std::int64_t until_ns);
  // Resolves everything; `end_ns` ends the gaps that are still open.
  void finish(std::int64_t end_ns);

  // Appends the resolved waiting time to `activities` and forgets it: one activity for the sum of all short gaps, then one
  // for each gap of 20 ms or more, then one for each step in mode `separate_step`. Appends no empty activities.
  void take_wait_activities(std::vector<Activity>& activities);

  // Number of edges that were dropped because too many were stored.
  std::uint64_t dropped_scope_change_count() const { return dropped_scope_change_count_; }

 private:
  using TallyKey = std::tuple<std::uint32_t, std::uint32_t, WaitKind>;  // queue, scope, kind
  struct WaitSums {
    TimeSpan span{INT64_MAX, INT64_MIN};
    std::map<TallyKey, WaitTally> tallies;
  };
  struct TracingChange {
    std::int64_t time_ns;
    WaitTracing tracing;
    std::int64_t untraced_kernels_end_ns;
    std::uint64_t separate_step_number;
  };
  // How far the edges of the host are processed for one device, and the state of the host at that time.
  struct HostCursor {
    std::int64_t time_ns;
    std::uint32_t scope;
    bool has_synchronized;                             // it waited for the GPU in this scope: it could not launch ahead
    std::int64_t period_end_ns;                        // when HostLatenessTracker::end_period() is due
    std::int64_t processed_from_ns;                    // begin of the processed time
    std::int64_t last_synchronization_ns = INT64_MIN;  // when the host last began to wait for the device
  };
  struct Device {
    std::vector<LaunchedKernel> pending_kernels;
    std::optional<std::int64_t> idle_since_ns;  // end of the last kernel; empty: unknown since tracing began
    bool may_run_untraced_kernels = false;      // idle_since_ns is an upper bound: untraced kernels may run until then
    WaitTracing tracing = WaitTracing::off;
    std::uint64_t separate_step_number = 0;  // key of separate_step_sums_
    std::uint32_t last_queue = 0;
    std::size_t next_tracing_change = 0;    // index into tracing_changes_
    std::optional<HostCursor> host_cursor;  // empty while gaps are not charged
    HostLatenessTracker host_lateness;
  };

  void resolve_idle_gaps(Device& device, std::int64_t until_ns);
  void apply_tracing_changes(Device& device, std::int64_t until_ns);
  HostCursor host_cursor_at(std::int64_t time_ns) const;
  void advance_host_cursor(Device& device, std::int64_t until_ns);
  void advance_host_cursor_to_launch(Device& device, const LaunchedKernel& kernel);
  WaitSums& select_wait_sums(const Device& device, std::int64_t gap_ns);
  // Charges the time since device.idle_from_ns without the intervals of lost records. `next_kernel`: the kernel that
  // ends it, or null. Leaves the begin of the last charged part in device.idle_from_ns.
  void charge_idle_gap(Device& device, std::int64_t to_ns, const LaunchedKernel* next_kernel);
  void charge_idle_time(Device& device, std::int64_t to_ns, const LaunchedKernel* next_kernel);
  void charge_wait_to_late_scopes(Device& device, TimeSpan span, std::uint32_t queue, WaitSums& sums);
  void collect_lateness_charges(Device& device);
  void charge_wait(TimeSpan wait_span, std::uint32_t queue, std::uint32_t scope, WaitKind kind, WaitSums& sums);
  void charge_wait_to_host_scopes(TimeSpan span, std::uint32_t queue, WaitSums& sums);
  // Calls charge(piece, scope, kind) for the scopes that the host was in.
  template <class Charge>
  void for_each_host_scope(TimeSpan span, Charge charge) const;
  void drop_old_scope_changes(std::int64_t until_ns);

  WaitTracing current_tracing_ = WaitTracing::off;
  std::vector<HostScopeChange> host_scope_changes_;        // by time
  std::vector<TracingChange> tracing_changes_;             // by time
  std::vector<TimeSpan> lost_record_spans_;                // by time
  WaitTracing tracing_before_changes_ = WaitTracing::off;  // mode after the last removed toggle
  std::map<std::uint32_t, Device> devices_;
  WaitSums short_gap_sums_;
  std::vector<WaitSums> long_gap_sums_;
  std::map<std::uint64_t, WaitSums> separate_step_sums_;
  std::uint64_t separate_step_count_ = 0;  // number of calls with `separate_step`
  std::uint64_t dropped_scope_change_count_ = 0;
};

}  // namespace joulemap
