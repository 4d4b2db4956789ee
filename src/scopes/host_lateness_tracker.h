// SPDX-License-Identifier: Apache-2.0
//
// HostLatenessTracker: divides the waiting time of a GPU among the scopes of the host that made it wait.
//
// A GPU that has work queued does not notice a slow host. It runs dry later, while the host is in another scope: after
// a loss with large kernels, the first layers of a backward pass launch their kernels in time, and the last ones seem
// late. All of them took more time of the host than they gave the GPU to do:
//
//   late = time of the host in the scope - time of the kernels that were launched from it     (at least 0)
//
// One more millisecond in any of them, before the last wait of a period, is one more millisecond of waiting. So the
// waits of a period are divided, when it ends, in proportion to the lateness of scopes up to its last wait. A period
// lasts from one synchronization of the host to the next, and no longer than the caller allows.
//
// Calls for a scope take amortized constant time. One instance per device. Not thread-safe. Nanoseconds.
#pragma once

#include <cstdint>
#include <vector>

namespace joulemap {

class HostLatenessTracker {
 public:
  // The host spent time in a scope. Calls of all functions must be in order of time.
  void add_host_time(std::uint32_t scope, std::int64_t host_ns) { change_lateness(scope, host_ns); }
  // A kernel was launched from a scope.
  void add_kernel(std::uint32_t scope, std::int64_t kernel_ns) { change_lateness(scope, -kernel_ns); }
  // The GPU waited. Returns false and charges nothing if the scopes of the period are late for less than its waits.
  bool add_wait(std::int64_t wait_ns);
  // Call when a period has lasted long enough: divides its waits. Lateness since its last wait counts half in the next
  // period.
  void end_period();
  // Call when the host waited for the GPU, or the GPU waited for so long that earlier lateness no longer matters: ends
  // the period, and none of its lateness counts in the next one.
  void reset_period();

  struct WaitCharge {
    std::uint32_t scope;
    std::int64_t wait_ns;
  };
  // Ends the period and returns the waiting time by scope since the last call.
  std::vector<WaitCharge> take_wait_charges();

 private:
  // Lateness may be negative: the scope gives the GPU more to do than it takes itself.
  struct ScopeLateness {
    std::int64_t lateness_at_wait_ns = 0;  // lateness in this period up to its last wait
    std::int64_t lateness_since_wait_ns = 0;
    double charged_ns = 0;
    bool is_active = false;
    bool is_changed = false;  // since the last wait
  };

  void change_lateness(std::uint32_t scope, std::int64_t lateness_change_ns);
  void divide_waits_by_lateness();
  void drop_inactive_scopes();

  std::vector<ScopeLateness> scopes_;             // by id
  std::vector<std::uint32_t> active_scope_ids_;   // ids of scopes that are late or early, or have a charge to take
  std::vector<std::uint32_t> changed_scope_ids_;  // ids of scopes that changed since the last wait
  std::int64_t total_lateness_ns_ = 0;            // sum of positive lateness_at_wait_ns
  std::int64_t period_wait_ns_ = 0;               // in this period
};

}  // namespace joulemap
