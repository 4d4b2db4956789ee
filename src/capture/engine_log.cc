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

bool has_no_tokens(const StepRequest& step_request) {
  return step_request.prompt_tokens == 0 && step_request.cached_tokens == 0 && step_request.decoded_tokens == 0 &&
         step_request.rejected_tokens == 0;
}

}  // namespace

std::uint32_t EngineLog::find_or_assign_request_number(const ReportedRequest& request) {
  if (const auto assigned_number = request_numbers_.find(request.id); assigned_number != request_numbers_.end())
    return assigned_number->second;
  if (request_numbers_.size() >= kMaxUnfinishedRequests) {
    forgotten_request_count_ += request_numbers_.size();
    request_numbers_.clear();
  }
  const std::uint32_t number = next_request_number_++;
  request_numbers_.emplace(request.id, number);
  pending_steps_.requests.push_back(
      {number, std::string(request.id), std::string(request.tenant), std::string(request.model)});
  return number;
}

void EngineLog::add_step(std::int64_t begin_ns, std::int64_t end_ns, std::span<const ReportedRequest> requests) {
  const std::lock_guard lock(lock_);
  if (pending_steps_.entries.size() + requests.size() > kMaxPendingEntries ||
      pending_steps_.steps.size() >= kMaxPendingEntries || requests.size() > kMaxRequestsPerStep) {
    ++dropped_step_count_;
    return;
  }
  if (end_ns < begin_ns) {
    ++negative_duration_step_count_;
    begin_ns = end_ns;
  }
  EngineStep step{begin_ns, end_ns, 0};
  for (const ReportedRequest& request : requests) {
    if (has_no_tokens(request.step_request) && !request_numbers_.contains(request.id)) {
      ++unknown_event_count_;
      continue;
    }
    StepRequest& entry = pending_steps_.entries.emplace_back(request.step_request);
    entry.request = find_or_assign_request_number(request);
    ++step.requests;
    if ((entry.events & (kRequestFinished | kRequestAborted)) != 0)
      request_numbers_.erase(request_numbers_.find(request.id));
  }
  pending_steps_.steps.push_back(step);
}

void EngineLog::drain_into(CaptureSink& sink) {
  EngineSteps batch;
  {
    const std::lock_guard lock(lock_);
    std::swap(batch, pending_steps_);
  }
  if (!batch.empty()) sink.add(std::move(batch));
}

Diagnostics EngineLog::diagnostics() {
  const std::lock_guard lock(lock_);
  Diagnostics all_diagnostics;
  if (dropped_step_count_ > 0)
    all_diagnostics.add(
        {"engine_steps_dropped", dropped_step_count_,
         "engine steps arrived faster than they could be written, or had more than 65536 requests; some are missing",
         "their energy is shown as idle; record on a faster disk"});
  if (negative_duration_step_count_ > 0)
    all_diagnostics.add({"engine_steps_reversed", negative_duration_step_count_,
                         "engine steps that end before they begin have no duration",
                         "pass times of CLOCK_MONOTONIC, or none"});
  if (unknown_event_count_ > 0)
    all_diagnostics.add({"engine_events_unknown", unknown_event_count_,
                         "events of requests that were in no step, or had finished before, are not recorded", ""});
  if (forgotten_request_count_ > 0)
    all_diagnostics.add({"engine_requests_unfinished", forgotten_request_count_,
                         "a million requests did not finish: those that continue are counted as new requests",
                         "report finished=True in the last step of each request"});
  return all_diagnostics;
}

}  // namespace joulemap::capture
