// SPDX-License-Identifier: Apache-2.0
//
// ProcessState: what the C interface keeps for the process it lives in: the table of windows and the engine that
// measures them. The interface has no handle to hang it on, so there is one for each process, and this is the only place
// that knows. It is made by the first call, never destroyed (threads of the host may call us while it exits), and left alone
// in the child of a fork, which makes its own: the parent's threads and locks are not there (base/fork_generation.h).
//
// Any thread may call anything.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/result.h"
#include "sampling/window_engine.h"
#include "sampling/window_table.h"

namespace joulemap::capi {

class ProcessState {
 public:
  // Of this process.
  static ProcessState& get() {
    ProcessState* const state = current_.load(std::memory_order_acquire);
    return state != nullptr ? *state : make();
  }

  // nullptr when this process has not begun anything: a fork's child that only lets go of its parent's windows, say.
  static ProcessState* existing() { return current_.load(std::memory_order_acquire); }

  sampling::WindowTable& windows() { return windows_; }

  // usage when it runs already.
  Status start(const sampling::WindowOptions& options);
  // The hot path's question, and what follows when the answer is no: a start with the options of the last one.
  bool is_started() const { return started_.load(std::memory_order_acquire); }
  Status start_if_needed();
  void stop();

  // nullptr before the first start. It stays good for those who hold it after a stop or another start.
  std::shared_ptr<sampling::WindowEngine> engine();

 private:
  explicit ProcessState(std::uint16_t epoch);
  static ProcessState& make();
  static void before_fork();
  static void after_fork_in_parent();
  static void forget_in_child();
  Status start_locked(const sampling::WindowOptions& options);

  static const int fork_handlers_;
  static std::mutex making_;
  static std::atomic<ProcessState*> current_;
  static std::atomic<std::uint16_t> epoch_;
  // Never freed: a child reads what its parent had.
  static std::atomic<const sampling::WindowOptions*> options_;

  sampling::WindowTable windows_;
  std::atomic<bool> started_{false};
  std::mutex lock_;
  std::shared_ptr<sampling::WindowEngine> engine_;
};

}  // namespace joulemap::capi
