// SPDX-License-Identifier: Apache-2.0
#include "capture/mark_log.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fork_generation.h"
#include "base/futex.h"
#include "base/scoped_signal_block.h"

namespace joulemap::capture {
namespace {

constexpr std::int64_t kWritePeriod_ns = 500 * kNanosecondsPerMillisecond;
// About 100 MB, the limit for a program that marks faster than the disk writes. Dropped marks are counted.
constexpr std::size_t kMaxPending = 1'000'000;

// Cached, because it is a system call; after a fork the thread has another id.
std::uint64_t id_of_this_thread() {
  struct Known {
    std::uint32_t generation = 0;
    std::uint64_t id = 0;
  };
  thread_local constinit Known known;
  if (known.id == 0 || known.generation != fork_generation()) {
    known = {fork_generation(), static_cast<std::uint64_t>(::gettid())};
  }
  return known.id;
}

}  // namespace

MarkLog::MarkLog(std::unique_ptr<MarkSink> sink, LogCallbacks callbacks)
    : sink_(std::move(sink)), callbacks_(std::move(callbacks)) {
  const ScopedSignalBlock signals_are_for_the_program;
  thread_ = std::thread([this] { run(); });
}

MarkLog::~MarkLog() { finish(); }

void MarkLog::run() {
  pthread_setname_np(pthread_self(), "joulemap");
  std::int64_t period_ns = callbacks_.tick ? 0 : kWritePeriod_ns;
  std::int64_t next_write_ns = monotonic_ns() + kWritePeriod_ns;
  while (stopping_.load() == 0) {
    wait_for_change(stopping_, 0, monotonic_ns() + period_ns);
    if (callbacks_.tick) period_ns = callbacks_.tick(clock_ns(CLOCK_THREAD_CPUTIME_ID));
    if (monotonic_ns() < next_write_ns) continue;
    write_pending(false);
    next_write_ns = monotonic_ns() + kWritePeriod_ns;
  }
}

void MarkLog::write_pending(bool is_last) {
  Batch batch;
  {
    const std::lock_guard lock(lock_);
    std::swap(batch, pending_);
  }
  for (Mark& mark : batch.marks) sink_->add(std::move(mark));
  for (Metric& metric : batch.metrics) sink_->add(std::move(metric));
  for (EnvironmentFact& fact : batch.facts) sink_->add(std::move(fact));
  if (callbacks_.collect_activity) callbacks_.collect_activity(*sink_, is_last);
  const Status written = sink_->flush();
  if (!written) failures_.add({"write_failed", 1, written.error().message, written.error().remedy});
}

void MarkLog::finish() {
  const std::lock_guard only_once(finish_lock_);
  if (!thread_.joinable()) return;
  stopping_.store(1);
  wake_all(stopping_);
  thread_.join();
  write_pending(true);
  if (dropped_ > 0)
    failures_.add({"marks_dropped", dropped_, "marks arrived faster than they could be written; some are missing", ""});
  failures_.add_all(diagnostics_);
  callbacks_.add_diagnostics(failures_);
  const Status finished = sink_->finish(failures_);
  if (!finished) fmt::print(stderr, "joulemap: {}\n", finished.error().message);
}

void MarkLog::add(Mark mark) {
  mark.thread = id_of_this_thread();
  const std::lock_guard lock(lock_);
  if (pending_.marks.size() < kMaxPending) {
    pending_.marks.push_back(std::move(mark));
  } else {
    ++dropped_;
  }
}

void MarkLog::mark(MarkKind kind, std::uint64_t id, std::string_view name) { mark_at(monotonic_ns(), kind, id, name); }

void MarkLog::mark_at(std::int64_t time_ns, MarkKind kind, std::uint64_t id, std::string_view name) {
  add({.time_ns = time_ns, .kind = kind, .id = id, .name = std::string(name)});
}

std::int64_t MarkLog::add_numbered_mark(MarkKind kind, std::optional<std::int64_t>& last,
                                        std::optional<std::int64_t> number, std::int64_t time_ns,
                                        std::string_view name) {
  std::int64_t now = 0;
  {
    const std::lock_guard lock(lock_);
    now = number ? *number : last ? *last + 1 : 0;
    last = now;
  }
  mark_at(time_ns, kind, static_cast<std::uint64_t>(now), name);
  return now;
}

std::int64_t MarkLog::step(std::optional<std::int64_t> number, std::int64_t time_ns, std::string_view name) {
  return add_numbered_mark(MarkKind::step, last_step_, number, time_ns, name);
}

std::int64_t MarkLog::epoch(std::optional<std::int64_t> number, std::int64_t time_ns, std::string_view name) {
  return add_numbered_mark(MarkKind::epoch, last_epoch_, number, time_ns, name);
}

void MarkLog::metric(std::string_view name, double value, std::int64_t time_ns) {
  Metric metric{.time_ns = time_ns, .name = std::string(name), .value = value};
  const std::lock_guard lock(lock_);
  metric.step = last_step_;
  if (pending_.metrics.size() < kMaxPending) {
    pending_.metrics.push_back(std::move(metric));
  } else {
    ++dropped_;
  }
}

void MarkLog::fact(EnvironmentFact fact) {
  const std::lock_guard lock(lock_);
  if (pending_.facts.size() < kMaxPending) pending_.facts.push_back(std::move(fact));
}

void MarkLog::add_diagnostic(Diagnostic diagnostic) {
  const std::lock_guard lock(lock_);
  diagnostics_.add(std::move(diagnostic));
}

}  // namespace joulemap::capture
