// SPDX-License-Identifier: Apache-2.0
#include "capture/mark_log.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/fork_generation.h"

namespace joulemap::capture {
namespace {

// Limit of pending marks, about 100 MB, for a program that marks faster than the disk writes. Dropped marks are
// counted.
constexpr std::size_t kMaxPending = 1'000'000;

// Cached, because gettid() is a system call; after a fork the thread has another id.
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

void MarkLog::drain_into(MarkSink& sink) {
  Batch batch;
  {
    const std::lock_guard lock(lock_);
    std::swap(batch, pending_);
  }
  for (Mark& mark : batch.marks) sink.add(std::move(mark));
  for (Metric& metric : batch.metrics) sink.add(std::move(metric));
  for (EnvironmentFact& fact : batch.facts) sink.add(std::move(fact));
}

Diagnostics MarkLog::diagnostics() {
  const std::lock_guard lock(lock_);
  Diagnostics all = diagnostics_;
  if (dropped_ > 0)
    all.add({"marks_dropped", dropped_, "marks arrived faster than they could be written; some are missing", ""});
  return all;
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
