// SPDX-License-Identifier: Apache-2.0
#include "capi/process_state.h"

#include <pthread.h>

#include <cstdlib>
#include <new>

#include "base/file_descriptor.h"
#include "base/fork_gate.h"
#include "base/fork_generation.h"

namespace joulemap::capi {
namespace {

// Longest time that a fork waits until none of our threads is inside NVML. Reading an energy counter takes
// milliseconds, opening NVML up to seconds.
constexpr std::int64_t kMaxForkWait_ns = 100 * kNanosecondsPerMillisecond;

std::string read_environment_variable(const char* name) {
  const char* const value = ::secure_getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// Options for programs that do not call jm_start.
sampling::WindowOptions default_window_options() {
  return {.root = {read_environment_variable("JOULEMAP_SYSROOT")},
          .sensors = read_environment_variable("JOULEMAP_SENSORS"),
          .period_ns = {}};
}

}  // namespace

// Registered when the library is loaded: before any thread can begin a window, and before any fork.
const int ProcessState::fork_handlers_ = ::pthread_atfork(&before_fork, &after_fork_in_parent, &after_fork_in_child);
constinit std::mutex ProcessState::creation_mutex_;
constinit std::atomic<ProcessState*> ProcessState::current_state_{nullptr};
constinit std::atomic<std::uint16_t> ProcessState::fork_generation_{0};
constinit std::atomic<const ProcessState::StartOptions*> ProcessState::start_options_{nullptr};

ProcessState::ProcessState(std::uint16_t epoch) : window_table_(epoch) {}

ProcessState& ProcessState::create() {
  const std::lock_guard lock(creation_mutex_);
  if (ProcessState* const state = current_state_.load(std::memory_order_acquire)) return *state;
  // No exit handler stops the engine: it has no data to write.
  if (++fork_generation_ == 0) ++fork_generation_;  // 0 is invalid; reached after 65535 nested forks
  auto* const state = new ProcessState(fork_generation_.load());
  current_state_.store(state, std::memory_order_release);
  return *state;
}

void ProcessState::before_fork() { nvml_fork_gate.before_fork(kMaxForkWait_ns); }

void ProcessState::after_fork_in_parent() { nvml_fork_gate.after_fork_in_parent(); }

// Replaces creation_mutex_: a thread of the parent may have held it, and does not exist in the child to release it.
void ProcessState::after_fork_in_child() {
  increment_fork_generation();
  nvml_fork_gate.after_fork_in_child();
  owned_descriptors.close_all_descriptors();
  new (&creation_mutex_) std::mutex;
  current_state_.store(nullptr, std::memory_order_release);
}

Status ProcessState::start_with_lock_held(const sampling::WindowOptions& options) {
  Result<std::unique_ptr<sampling::WindowEngine>> engine = sampling::WindowEngine::start(window_table_, options);
  if (!engine) return std::move(engine).error();
  const StartOptions* const latest_start_options = start_options_.load();
  if (latest_start_options == nullptr || latest_start_options->window_options != options)
    start_options_.store(new StartOptions{options, latest_start_options});
  window_engine_ = std::move(*engine);
  is_started_.store(true, std::memory_order_release);
  return Done{};
}

Status ProcessState::start(const sampling::WindowOptions& options) {
  const std::lock_guard lock(start_mutex_);
  if (is_started()) return Error{ErrorCode::usage, "joulemap is already measuring", "stop it first"};
  return start_with_lock_held(options);
}

Status ProcessState::start_if_needed() {
  const std::lock_guard lock(start_mutex_);
  if (is_started()) return Done{};
  const StartOptions* const latest_start_options = start_options_.load();
  return start_with_lock_held(latest_start_options != nullptr ? latest_start_options->window_options
                                                              : default_window_options());
}

void ProcessState::stop() {
  const std::lock_guard lock(start_mutex_);
  if (!is_started()) return;
  is_started_.store(false, std::memory_order_release);
  window_engine_->stop();
}

std::shared_ptr<sampling::WindowEngine> ProcessState::window_engine() {
  const std::lock_guard lock(start_mutex_);
  return window_engine_;
}

}  // namespace joulemap::capi
