// SPDX-License-Identifier: Apache-2.0
//
// LateScopes: divides the waiting time of a GPU among the scopes of the host that made it wait.
//
// A GPU that has work queued does not notice a slow host. It runs dry later, while the host is in another scope: after a
// loss with large kernels, the first layers of a backward pass launch theirs in time, and the last ones seem to be late.
// All of them took more time of the host than they gave the GPU to do. So a wait is divided among all scopes since the
// host last waited for the GPU, in proportion to the time by which each of them is late. Recent lateness counts more.
//
//   late = time of the host in the scope - time of the kernels that were launched from it     (at least 0)
//
// Calls for a scope are O(1): a scope is brought up to date only when its own lateness changes. One instance per device. Not
// thread-safe. Nanoseconds.
#pragma once

#include <cstdint>
#include <vector>

namespace joulemap {

class LateScopes {
 public:
  // The host spent time in a scope. In order of time with the other calls.
  void add_host_time(std::uint32_t scope, std::int64_t host_ns);
  // A kernel was launched from a scope.
  void add_kernel(std::uint32_t scope, std::int64_t kernel_ns);
  // The GPU waited. False, and nothing is charged, where scopes are not late for that long.
  bool add_wait(std::int64_t wait_ns);
  // Call it at regular times: what happened before counts for less from now on.
  void fade();
  // The host waited for the GPU, or the GPU for so long that earlier lateness no longer matters: all begin anew.
  void begin_anew();

  struct Charge {
    std::uint32_t scope;
    std::int64_t wait_ns;
  };
  // Returns the waiting time by scope since the last call; lateness stays.
  std::vector<Charge> take();

 private:
  struct Scope {
    std::int64_t late_ns = 0;  // negative: it gives the GPU more to do than it takes itself
    double waits_seen = 0;     // value of waits_ up to which it was charged
    double charged_ns = 0;
    bool is_active = false;
  };

  Scope& up_to_date(std::uint32_t scope);
  void change(std::uint32_t scope, std::int64_t by_ns);
  void drop_inactive();

  std::vector<Scope> scopes_;          // by id
  std::vector<std::uint32_t> active_;  // ids of those that are late or early, or have a charge that was not taken
  std::int64_t late_ns_ = 0;           // sum of positive lateness
  double waits_ = 0;                   // sum of wait / total lateness at that time: what a late nanosecond is charged
};

}  // namespace joulemap
