// SPDX-License-Identifier: Apache-2.0
#include "capture/engine_log.h"

#include <utility>

namespace joulemap::capture {
namespace {

// Limit of pending entries, about 60 MB, for an engine that reports faster than the disk writes.
constexpr std::size_t kMaxPendingEntries = 2'000'000;
// Limit of requests that are neither finished nor aborted, about 100 MB: an engine that never reports the end of its
// requests must not fill the memory.
constexpr std::size_t kMaxUnfinishedRequests = 1'000'000;

bool is_only_event(const StepRequest& work) {
  return work.prompt_tokens == 0 && work.cached_tokens == 0 && work.decoded_tokens == 0 && work.rejected_tokens == 0;
}

}  // namespace

std::uint32_t EngineLog::number_of(const ReportedRequest& request) {
  if (const auto known = numbers_.find(request.id); known != numbers_.end()) return known->second;
  if (numbers_.size() >= kMaxUnfinishedRequests) {
    forgotten_requests_ += numbers_.size();
    numbers_.clear();
  }
  const std::uint32_t number = next_number_++;
  numbers_.emplace(request.id, number);
  pending_.requests.push_back(
      {number, std::string(request.id), std::string(request.tenant), std::string(request.model)});
  return number;
}

void EngineLog::add_step(std::int64_t begin_ns, std::int64_t end_ns, std::span<const ReportedRequest> requests) {
  const std::lock_guard lock(lock_);
  if (pending_.entries.size() + requests.size() > kMaxPendingEntries || pending_.steps.size() >= kMaxPendingEntries ||
      requests.size() > kMaxRequestsPerStep) {
    ++dropped_steps_;
    return;
  }
  if (end_ns < begin_ns) {
    ++reversed_steps_;
    begin_ns = end_ns;
  }
  EngineStep step{begin_ns, end_ns, 0};
  for (const ReportedRequest& request : requests) {
    if (is_only_event(request.work) && !numbers_.contains(request.id)) {
      ++unknown_events_;
      continue;
    }
    StepRequest& entry = pending_.entries.emplace_back(request.work);
    entry.request = number_of(request);
    ++step.requests;
    if ((entry.events & (kRequestFinished | kRequestAborted)) != 0) numbers_.erase(numbers_.find(request.id));
  }
  pending_.steps.push_back(step);
}

void EngineLog::drain_into(MarkSink& sink) {
  EngineSteps batch;
  {
    const std::lock_guard lock(lock_);
    std::swap(batch, pending_);
  }
  if (!batch.empty()) sink.add(std::move(batch));
}

Diagnostics EngineLog::diagnostics() {
  const std::lock_guard lock(lock_);
  Diagnostics all;
  if (dropped_steps_ > 0)
    all.add(
        {"engine_steps_dropped", dropped_steps_,
         "engine steps arrived faster than they could be written, or had more than 65536 requests; some are missing",
         "their energy is shown as idle; record on a faster disk"});
  if (reversed_steps_ > 0)
    all.add({"engine_steps_reversed", reversed_steps_, "engine steps that end before they begin have no duration",
             "pass times of CLOCK_MONOTONIC, or none"});
  if (unknown_events_ > 0)
    all.add({"engine_events_unknown", unknown_events_,
             "events of requests that were in no step, or had finished before, are not recorded", ""});
  if (forgotten_requests_ > 0)
    all.add({"engine_requests_unfinished", forgotten_requests_,
             "a million requests did not finish: those that continue are counted as new requests",
             "report finished=True in the last step of each request"});
  return all;
}

}  // namespace joulemap::capture
