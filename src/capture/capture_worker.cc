// SPDX-License-Identifier: Apache-2.0
#include "capture/capture_worker.h"

#include <fmt/format.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/scoped_signal_block.h"

namespace joulemap::capture {
namespace {

constexpr std::int64_t kWritePeriod_ns = 500 * kNanosecondsPerMillisecond;

}  // namespace

CaptureWorker::CaptureWorker(std::unique_ptr<MarkSink> sink, MarkLog& marks, PeriodicWork* work)
    : sink_(std::move(sink)), marks_(marks), work_(work) {
  const ScopedSignalBlock signals_are_for_the_program;
  thread_ = std::thread([this] { run(); });
}

CaptureWorker::~CaptureWorker() { finish(); }

void CaptureWorker::run() {
  pthread_setname_np(pthread_self(), "joulemap");
  std::int64_t period_ns = work_ != nullptr ? 0 : kWritePeriod_ns;
  std::int64_t next_write_ns = monotonic_ns() + kWritePeriod_ns;
  while (stopping_.load() == 0) {
    wait_for_change(stopping_, 0, monotonic_ns() + period_ns);
    if (work_ != nullptr) period_ns = work_->tick(clock_ns(CLOCK_THREAD_CPUTIME_ID));
    if (monotonic_ns() < next_write_ns) continue;
    write_pending(false);
    next_write_ns = monotonic_ns() + kWritePeriod_ns;
  }
}

void CaptureWorker::write_pending(bool is_last) {
  marks_.drain_into(*sink_);
  if (work_ != nullptr) work_->collect_activity(*sink_, is_last);
  const Status written = sink_->flush();
  if (!written) failures_.add({"write_failed", 1, written.error().message, written.error().remedy});
}

void CaptureWorker::finish() {
  const std::lock_guard only_once(finish_lock_);
  if (!thread_.joinable()) return;
  stopping_.store(1);
  wake_all(stopping_);
  thread_.join();
  write_pending(true);
  failures_.add_all(marks_.diagnostics());
  if (work_ != nullptr) work_->add_diagnostics(failures_);
  const Status finished = sink_->finish(failures_);
  if (!finished) fmt::print(stderr, "joulemap: {}\n", finished.error().message);
}

}  // namespace joulemap::capture
