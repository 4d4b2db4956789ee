// SPDX-License-Identifier: Apache-2.0
#include "capture/mark_log.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/fork_generation.h"

namespace joulemap::capture {
namespace {

// Limit of pending marks, about 100 MB, for a program that marks faster than the disk writes. Dropped marks are
// counted.
constexpr std::size_t kMaxPendingMarks = 1'000'000;

// Cached, because gettid() is a system call; after a fork the thread has another id.
std::uint64_t id_of_this_thread() {
  struct CachedThreadId {
    std::uint32_t generation = 0;
    std::uint64_t id = 0;
  };
  thread_local constinit CachedThreadId cached_thread_id;
  if (cached_thread_id.id == 0 || cached_thread_id.generation != fork_generation()) {
    cached_thread_id = {fork_generation(), static_cast<std::uint64_t>(::gettid())};
  }
  return cached_thread_id.id;
}

}  // namespace

void MarkLog::drain_into(CaptureSink& sink) {
  PendingMarks batch;
  {
    const std::lock_guard lock(lock_);
    std::swap(batch, pending_marks_);
  }
  for (Mark& mark : batch.marks) sink.add(std::move(mark));
  for (Metric& metric : batch.metrics) sink.add(std::move(metric));
  for (EnvironmentFact& fact : batch.facts) sink.add(std::move(fact));
}

Diagnostics MarkLog::diagnostics() {
  const std::lock_guard lock(lock_);
  Diagnostics all_diagnostics = diagnostics_;
  if (dropped_count_ > 0)
    all_diagnostics.add(
        {"marks_dropped", dropped_count_, "marks arrived faster than they could be written; some are missing", ""});
  return all_diagnostics;
}

void MarkLog::add(Mark mark) {
  mark.thread = id_of_this_thread();
  const std::lock_guard lock(lock_);
  if (pending_marks_.marks.size() < kMaxPendingMarks) {
    pending_marks_.marks.push_back(std::move(mark));
  } else {
    ++dropped_count_;
  }
}

void MarkLog::add_mark(MarkKind kind, std::uint64_t id, std::string_view name) {
  add_mark_at(monotonic_ns(), kind, id, name);
}

void MarkLog::add_mark_at(std::int64_t time_ns, MarkKind kind, std::uint64_t id, std::string_view name) {
  add({.time_ns = time_ns, .kind = kind, .id = id, .name = std::string(name)});
}

std::int64_t MarkLog::add_numbered_mark(MarkKind kind, std::optional<std::int64_t>& last_number,
                                        std::optional<std::int64_t> number, std::int64_t time_ns,
                                        std::string_view name) {
  std::int64_t mark_number = 0;
  {
    const std::lock_guard lock(lock_);
    mark_number = number ? *number : last_number ? *last_number + 1 : 0;
    last_number = mark_number;
  }
  add_mark_at(time_ns, kind, static_cast<std::uint64_t>(mark_number), name);
  return mark_number;
}

std::int64_t MarkLog::add_step(std::optional<std::int64_t> number, std::int64_t time_ns, std::string_view name) {
  return add_numbered_mark(MarkKind::step, last_step_number_, number, time_ns, name);
}

std::int64_t MarkLog::add_epoch(std::optional<std::int64_t> number, std::int64_t time_ns, std::string_view name) {
  return add_numbered_mark(MarkKind::epoch, last_epoch_number_, number, time_ns, name);
}

void MarkLog::retract(MarkKind kind, std::optional<std::int64_t>& last_number, std::uint64_t count) {
  {
    const std::lock_guard lock(lock_);
    const std::int64_t number = last_number.value_or(-1) - static_cast<std::int64_t>(count);
    last_number = number >= 0 ? std::optional(number) : std::nullopt;
  }
  add_mark(kind, count, {});
}

void MarkLog::retract_steps(std::uint64_t count) { retract(MarkKind::step_retraction, last_step_number_, count); }

void MarkLog::retract_epochs(std::uint64_t count) { retract(MarkKind::epoch_retraction, last_epoch_number_, count); }

void MarkLog::add_metric(std::string_view name, double value, std::int64_t time_ns) {
  Metric metric{.time_ns = time_ns, .name = std::string(name), .value = value};
  const std::lock_guard lock(lock_);
  metric.step = last_step_number_;
  if (pending_marks_.metrics.size() < kMaxPendingMarks) {
    pending_marks_.metrics.push_back(std::move(metric));
  } else {
    ++dropped_count_;
  }
}

void MarkLog::add_fact(EnvironmentFact fact) {
  const std::lock_guard lock(lock_);
  if (pending_marks_.facts.size() < kMaxPendingMarks) pending_marks_.facts.push_back(std::move(fact));
}

void MarkLog::add_diagnostic(Diagnostic diagnostic) {
  const std::lock_guard lock(lock_);
  diagnostics_.add(std::move(diagnostic));
}

}  // namespace joulemap::capture
