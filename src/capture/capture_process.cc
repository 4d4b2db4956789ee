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
constinit std::atomic<int> asked{0};
constinit std::mutex making;
constinit std::atomic<bool> finishes_at_exit{false};
constinit std::atomic<pid_t> owner{0};  // process that created `current`

// Resets the lock: a thread of the parent may have held it, and that thread does not exist here.
void forget_in_child() {
  begin_fork_generation();
  owned_descriptors.close_all();
  new (&making) std::mutex;
  nvtx::forget_names_in_child();
  forget_cuda_in_child();
  if (Capture* const parents = current.load()) parents->abandon();
  current.store(nullptr);
  asked.store(0);
}

// Registered when the library is loaded: no thread uses it yet, and no fork can precede the handler.
[[maybe_unused]] const int fork_handler = ::pthread_atfork(nullptr, nullptr, &forget_in_child);

void finish_at_exit() { Capture::finish_existing(); }

TracingMode closeness_asked_for() {
  const char* const text = std::getenv("JOULEMAP_TRACE");
  const std::string_view closeness = text == nullptr ? "" : text;
  if (closeness == "full") return TracingMode::full;
  return closeness == "light" ? TracingMode::light : TracingMode::automatic;
}

}  // namespace

bool Capture::join() {
  if (current.load() == nullptr) {
    const std::lock_guard lock(making);
    asked.store(0);
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
  if (asked.load(std::memory_order_acquire) == 2) return current.load(std::memory_order_relaxed);
  const std::lock_guard lock(making);
  if (asked.load() == 2) return current.load();
  if (!finishes_at_exit.exchange(true)) std::atexit(&finish_at_exit);
  if (std::unique_ptr<MarkSink> sink = open_recording_sink()) {
    owner.store(::getpid());
    current.store(new Capture(std::move(sink), closeness_asked_for()), std::memory_order_release);
  }
  asked.store(2, std::memory_order_release);
  return current.load();
}

}  // namespace joulemap::capture
