// SPDX-License-Identifier: Apache-2.0
//
// The single Capture of a process: created on first use, finished at exit, dropped by the child of a fork.
#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

#include "base/file_descriptor.h"
#include "base/fork_generation.h"
#include "capture/capture.h"
#include "capture/cuda_capture.h"
#include "capture/nvtx/nvtx_attach.h"
#include "capture/recording_sink.h"

namespace joulemap::capture {
namespace {

// Global state: the C interface that hooks and drivers call has no handle that could hold it.
constinit std::atomic<Capture*> current{nullptr};
// Whether the environment was read: 0 no, 2 yes.
constinit std::atomic<int> environment_was_read{0};
constinit std::mutex creation_lock;
constinit std::atomic<bool> finishes_at_exit{false};
constinit std::atomic<pid_t> owner{0};  // process that created `current`

// Resets the lock: a thread of the parent may have held it, and that thread does not exist here.
void forget_in_child() {
  begin_fork_generation();
  owned_descriptors.close_all();
  new (&creation_lock) std::mutex;
  nvtx::forget_names_in_child();
  forget_cuda_in_child();
  if (Capture* const parents = current.load()) parents->abandon_in_child();
  current.store(nullptr);
  environment_was_read.store(0);
}

// Registered when the library is loaded: no thread uses it yet, and no fork can precede the handler.
[[maybe_unused]] const int fork_handler = ::pthread_atfork(nullptr, nullptr, &forget_in_child);

void finish_at_exit() { Capture::finish_existing(); }

TracingMode requested_tracing_mode() {
  const char* const text = std::getenv("JOULEMAP_TRACE");
  const std::string_view tracing_mode = text == nullptr ? "" : text;
  if (tracing_mode == "full") return TracingMode::full;
  return tracing_mode == "light" ? TracingMode::light : TracingMode::automatic;
}

}  // namespace

bool Capture::join_recording() {
  if (current.load() == nullptr) {
    const std::lock_guard lock(creation_lock);
    environment_was_read.store(0);
  }
  return get() != nullptr;
}

// Keeps the object: other threads may be inside it. It accepts no data any more.
void Capture::leave_recording() {
  Capture* const ended = current.exchange(nullptr);
  if (ended != nullptr) ended->finish();
}

// A bare clone() runs no fork handlers: its child lacks the thread that finish would join.
void Capture::finish_existing() {
  Capture* const capture = current.load();
  if (capture != nullptr && owner.load() == ::getpid()) capture->finish();
}

Capture* Capture::existing() { return current.load(std::memory_order_acquire); }

Capture* Capture::get() {
  if (environment_was_read.load(std::memory_order_acquire) == 2) return current.load(std::memory_order_relaxed);
  const std::lock_guard lock(creation_lock);
  if (environment_was_read.load() == 2) return current.load();
  if (!finishes_at_exit.exchange(true)) std::atexit(&finish_at_exit);
  if (std::unique_ptr<MarkSink> sink = open_recording_sink()) {
    owner.store(::getpid());
    current.store(new Capture(std::move(sink), requested_tracing_mode()), std::memory_order_release);
  }
  environment_was_read.store(2, std::memory_order_release);
  return current.load();
}

}  // namespace joulemap::capture
