// SPDX-License-Identifier: Apache-2.0
//
// ProcessState: the state of the C interface in its process: the table of windows and the engine that measures them.
// The interface has no handle to attach it to, so there is one per process. The first call creates it, and nothing
// destroys it, because threads of the program may call it during exit. The child of a fork abandons it and creates its
// own: the parent's threads and locks do not exist there (base/fork_generation.h).
//
// All functions are thread-safe.
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
  // The state of this process, created on first use.
  static ProcessState& get() {
    ProcessState* const state = current_state_.load(std::memory_order_acquire);
    return state != nullptr ? *state : create();
  }

  // nullptr if no call has created the state yet: for example in a fork's child that only frees its parent's windows.
  static ProcessState* get_if_created() { return current_state_.load(std::memory_order_acquire); }

  sampling::WindowTable& window_table() { return window_table_; }

  // Starts the engine. Fails with `usage` if it is already running.
  Status start(const sampling::WindowOptions& options);
  // jm_begin calls is_started(), and if false start_if_needed(), which uses the options of the last start (of this
  // process or its parent), or those of the environment variables.
  bool is_started() const { return is_started_.load(std::memory_order_acquire); }
  Status start_if_needed();
  void stop();

  // nullptr before the first start. The caller may go on using the engine after a stop or another start.
  std::shared_ptr<sampling::WindowEngine> window_engine();

 private:
  explicit ProcessState(std::uint16_t epoch);
  static ProcessState& create();
  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();
  Status start_with_lock_held(const sampling::WindowOptions& options);

  static const int fork_handlers_;
  static std::mutex creation_mutex_;
  static std::atomic<ProcessState*> current_state_;
  static std::atomic<std::uint16_t> fork_generation_;
  // Options of the last start, and of those before it. Never freed: the child of a fork reads those of its parent.
  struct StartOptions {
    sampling::WindowOptions window_options;
    const StartOptions* previous_options;
  };
  static std::atomic<const StartOptions*> start_options_;

  sampling::WindowTable window_table_;
  std::atomic<bool> is_started_{false};
  std::mutex start_mutex_;
  std::shared_ptr<sampling::WindowEngine> window_engine_;
};

}  // namespace joulemap::capi
