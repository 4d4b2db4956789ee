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

CaptureWorker::CaptureWorker(std::unique_ptr<MarkSink> sink, MarkLog& marks, PeriodicWork* work)
    : mark_sink_(std::move(sink)), mark_log_(marks), periodic_work_(work) {
  const ScopedSignalBlock signals_are_for_the_program;
  thread_ = std::thread([this] { run(); });
}

CaptureWorker::~CaptureWorker() { finish(); }

void CaptureWorker::run() {
  pthread_setname_np(pthread_self(), "joulemap");
  std::int64_t period_ns = periodic_work_ != nullptr ? 0 : kMarkWritePeriod_ns;
  std::int64_t next_write_ns = monotonic_ns() + kMarkWritePeriod_ns;
  while (stop_requested_.load() == 0) {
    wait_for_change(stop_requested_, 0, monotonic_ns() + period_ns);
    if (periodic_work_ != nullptr) period_ns = periodic_work_->do_periodic_work(clock_ns(CLOCK_THREAD_CPUTIME_ID));
    if (monotonic_ns() < next_write_ns) continue;
    write_pending(false);
    next_write_ns = monotonic_ns() + kMarkWritePeriod_ns;
  }
}

void CaptureWorker::write_pending(bool is_last) {
  mark_log_.drain_into(*mark_sink_);
  if (periodic_work_ != nullptr) periodic_work_->collect_activity(*mark_sink_, is_last);
  const Status written = mark_sink_->flush();
  if (!written) write_errors_.add({"write_failed", 1, written.error().message, written.error().remedy});
}

void CaptureWorker::finish() {
  const std::lock_guard only_once(finish_lock_);
  if (!thread_.joinable()) return;
  stop_requested_.store(1);
  wake_all(stop_requested_);
  thread_.join();
  write_pending(true);
  write_errors_.add_all(mark_log_.diagnostics());
  if (periodic_work_ != nullptr) periodic_work_->add_diagnostics(write_errors_);
  const Status finished = mark_sink_->finish(write_errors_);
  if (!finished) fmt::print(stderr, "joulemap: {}\n", finished.error().message);
}

}  // namespace joulemap::capture
