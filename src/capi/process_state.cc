// SPDX-License-Identifier: Apache-2.0
#include "capi/process_state.h"

#include <pthread.h>

#include <cstdlib>
#include <new>

namespace joulemap::capi {
namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// What a program that starts nothing itself is measured with.
sampling::WindowOptions usual_options() {
  return {.root = {environment("JOULEMAP_SYSROOT")}, .sensors = environment("JOULEMAP_SENSORS"), .period_ns = {}};
}

}  // namespace

constinit std::mutex ProcessState::making_;
constinit std::atomic<ProcessState*> ProcessState::current_{nullptr};
constinit std::atomic<std::uint16_t> ProcessState::epoch_{0};
constinit std::atomic<const sampling::WindowOptions*> ProcessState::options_{nullptr};

ProcessState::ProcessState(std::uint16_t epoch) : windows_(epoch) {}

ProcessState& ProcessState::make() {
  static std::mutex
      making;  // a child that was forked while it was held is one that never measured: see forget_in_child
  const std::lock_guard lock(making);
  if (ProcessState* const state = current_.load(std::memory_order_acquire)) return *state;
  // The engine needs no farewell at exit: nothing of it is lost with the process.
  if (epoch_.fetch_add(1) == 0) ::pthread_atfork(nullptr, nullptr, &forget_in_child);
  auto* const state = new ProcessState(epoch_.load());
  current_.store(state, std::memory_order_release);
  return *state;
}

// Another thread of the parent may have held the lock, and is not here to give it back.
void ProcessState::forget_in_child() {
  new (&making_) std::mutex;
  current_.store(nullptr, std::memory_order_release);
}

Status ProcessState::start_locked(const sampling::WindowOptions& options) {
  Result<std::unique_ptr<sampling::WindowEngine>> engine = sampling::WindowEngine::start(windows_, options);
  if (!engine) return std::move(engine).error();
  options_.store(new sampling::WindowOptions(options));
  engine_ = std::move(*engine);
  started_.store(true, std::memory_order_release);
  return Done{};
}

Status ProcessState::start(const sampling::WindowOptions& options) {
  const std::lock_guard lock(lock_);
  if (is_started()) return Error{ErrorCode::usage, "joulemap measures already", "stop it first"};
  return start_locked(options);
}

Status ProcessState::start_if_needed() {
  const std::lock_guard lock(lock_);
  if (is_started()) return Done{};
  const sampling::WindowOptions* const last = options_.load();
  return start_locked(last != nullptr ? *last : usual_options());
}

void ProcessState::stop() {
  const std::lock_guard lock(lock_);
  if (!is_started()) return;
  started_.store(false, std::memory_order_release);
  engine_->stop();
}

std::shared_ptr<sampling::WindowEngine> ProcessState::engine() {
  const std::lock_guard lock(lock_);
  return engine_;
}

}  // namespace joulemap::capi
