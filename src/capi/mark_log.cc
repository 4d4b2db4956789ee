// SPDX-License-Identifier: Apache-2.0
#include "capi/mark_log.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/signal_shield.h"

namespace joulemap::capi {
namespace {

constexpr std::int64_t kWritePeriod_ns = 500 * kNanosecondsPerMillisecond;
// About 100 MB: a program that marks faster than a disk writes must not fill the memory. What is dropped is counted.
constexpr std::size_t kMostPending = 1'000'000;

struct OpenRegion {
  const MarkLog* log = nullptr;
  std::uint64_t id = 0;
  std::string name;
};

// Regions belong to a thread; so does its stack of them. Those of another log are a parent's, seen after a fork.
std::vector<OpenRegion>& open_regions(const MarkLog* log) {
  thread_local std::vector<OpenRegion> regions;
  if (!regions.empty() && regions.back().log != log) regions.clear();
  return regions;
}

std::uint64_t this_thread() {
  thread_local const auto id = static_cast<std::uint64_t>(::gettid());
  return id;
}

}  // namespace

MarkLog::MarkLog(std::unique_ptr<MarkSink> sink) : sink_(std::move(sink)) {
  const SignalShield signals_are_for_the_program;
  thread_ = std::thread([this] { run(); });
}

MarkLog::~MarkLog() { finish(); }

void MarkLog::run() {
  pthread_setname_np(pthread_self(), "joulemap");
  while (stopping_.load() == 0) {
    wait_for_change(stopping_, 0, monotonic_ns() + kWritePeriod_ns);
    write_pending();
  }
}

void MarkLog::write_pending() {
  Batch batch;
  {
    const std::lock_guard lock(lock_);
    std::swap(batch, pending_);
  }
  for (Mark& mark : batch.marks) sink_->add(std::move(mark));
  for (Metric& metric : batch.metrics) sink_->add(std::move(metric));
  const Status written = sink_->flush();
  if (!written) failures_.add({"write_failed", 1, written.error().message, written.error().remedy});
}

void MarkLog::finish() {
  if (!thread_.joinable()) return;
  stopping_.store(1);
  wake_all(stopping_);
  thread_.join();
  write_pending();
  if (dropped_ > 0)
    failures_.add({"marks_dropped", dropped_, "marks came faster than they could be written; some are missing", ""});
  const Status finished = sink_->finish(failures_);
  if (!finished) fmt::print(stderr, "joulemap: {}\n", finished.error().message);
}

void MarkLog::add(Mark mark) {
  mark.time_ns = monotonic_ns();
  mark.thread = this_thread();
  const std::lock_guard lock(lock_);
  if (pending_.marks.size() < kMostPending) {
    pending_.marks.push_back(std::move(mark));
  } else {
    ++dropped_;
  }
}

void MarkLog::mark(MarkKind kind, std::uint64_t id, std::string_view name) {
  add({.kind = kind, .id = id, .name = std::string(name)});
}

void MarkLog::push_region(std::string_view name) {
  OpenRegion region{this, next_region_.fetch_add(1, std::memory_order_relaxed), std::string(name)};
  mark(MarkKind::region_begin, region.id, region.name);
  open_regions(this).push_back(std::move(region));
}

bool MarkLog::pop_region() {
  std::vector<OpenRegion>& regions = open_regions(this);
  if (regions.empty()) return false;
  mark(MarkKind::region_end, regions.back().id, regions.back().name);
  regions.pop_back();
  return true;
}

void MarkLog::count(MarkKind kind, std::optional<std::int64_t>& last, std::optional<std::int64_t> number) {
  std::int64_t now = 0;
  {
    const std::lock_guard lock(lock_);
    now = number ? *number : last ? *last + 1 : 0;
    last = now;
  }
  mark(kind, static_cast<std::uint64_t>(now), "");
}

void MarkLog::step(std::optional<std::int64_t> number) { count(MarkKind::step, step_, number); }

void MarkLog::epoch(std::optional<std::int64_t> number) { count(MarkKind::epoch, epoch_, number); }

void MarkLog::metric(std::string_view name, double value) {
  Metric metric{.time_ns = monotonic_ns(), .name = std::string(name), .value = value};
  const std::lock_guard lock(lock_);
  metric.step = step_;
  if (pending_.metrics.size() < kMostPending) {
    pending_.metrics.push_back(std::move(metric));
  } else {
    ++dropped_;
  }
}

}  // namespace joulemap::capi
