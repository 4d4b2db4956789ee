// SPDX-License-Identifier: Apache-2.0
#include "capture/capture_worker.h"

#include <fmt/format.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/scoped_signal_block.h"

namespace joulemap::capture {
namespace {

constexpr std::int64_t kMarkWritePeriod_ns = 500 * kNanosecondsPerMillisecond;

}  // namespace

CaptureWorker::CaptureWorker(std::unique_ptr<CaptureSink> sink, MarkLog& marks, WorkerCallbacks* work)
    : capture_sink_(std::move(sink)), mark_log_(marks), worker_callbacks_(work) {
  const ScopedSignalBlock signal_block;
  thread_ = std::thread([this] { run(); });
}

CaptureWorker::~CaptureWorker() { finish(); }

void CaptureWorker::run() {
  pthread_setname_np(pthread_self(), "joulemap");
  std::int64_t period_ns = worker_callbacks_ != nullptr ? 0 : kMarkWritePeriod_ns;
  std::int64_t next_write_ns = monotonic_ns() + kMarkWritePeriod_ns;
  while (stop_requested_.load() == 0) {
    wait_for_word_change(stop_requested_, 0, monotonic_ns() + period_ns);
    if (worker_callbacks_ != nullptr) period_ns = worker_callbacks_->run_tick(clock_ns(CLOCK_THREAD_CPUTIME_ID));
    if (monotonic_ns() < next_write_ns) continue;
    write_pending_data(false);
    next_write_ns = monotonic_ns() + kMarkWritePeriod_ns;
  }
}

void CaptureWorker::write_pending_data(bool is_last) {
  mark_log_.drain_into(*capture_sink_);
  if (worker_callbacks_ != nullptr) worker_callbacks_->collect_activity(*capture_sink_, is_last);
  const Status flush_status = capture_sink_->flush();
  if (!flush_status) write_errors_.add({"write_failed", 1, flush_status.error().message, flush_status.error().remedy});
}

void CaptureWorker::finish() {
  const std::lock_guard finish_guard(finish_lock_);
  if (!thread_.joinable()) return;
  stop_requested_.store(1);
  wake_all_waiters(stop_requested_);
  thread_.join();
  write_pending_data(true);
  write_errors_.add_all(mark_log_.diagnostics());
  if (worker_callbacks_ != nullptr) worker_callbacks_->add_diagnostics(write_errors_);
  const Status finish_status = capture_sink_->finish(write_errors_);
  if (!finish_status) fmt::print(stderr, "joulemap: {}\n", finish_status.error().message);
}

}  // namespace joulemap::capture
