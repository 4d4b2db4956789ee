// SPDX-License-Identifier: Apache-2.0
//
// EngineLog: buffers the forward steps that a serving engine reports, until the CaptureWorker writes them to the
// recording. Numbers requests: an id keeps its number until the request finishes or is aborted. Thread-safe; a report
// holds a lock for about 50 ns per request. The child of a fork must not touch its parent's log.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "capture/mark_log.h"
#include "model/engine_step.h"

namespace joulemap::capture {

// The part of one request in a step, by the engine's id of the request. Members of StepRequest without a number.
struct ReportedRequest {
  std::string_view id;
  std::string_view tenant;
  std::string_view model;
  StepRequest step_request;
};

class EngineLog {
 public:
  // Adds a step. A step that ends before it begins is stored without duration and counted.
  void add_step(std::int64_t begin_ns, std::int64_t end_ns, std::span<const ReportedRequest> requests);

  // Moves everything that is pending into `sink`; called by one thread at a time.
  void drain_into(CaptureSink& sink);
  Diagnostics diagnostics();

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  std::uint32_t find_or_assign_request_number(const ReportedRequest& request);

  std::mutex lock_;
  EngineSteps pending_steps_;
  std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>> request_numbers_;  // of unfinished requests
  std::uint32_t next_request_number_ = 0;
  std::uint64_t dropped_step_count_ = 0;
  std::uint64_t negative_duration_step_count_ = 0;
  std::uint64_t unknown_event_count_ = 0;
  std::uint64_t forgotten_request_count_ = 0;
};

}  // namespace joulemap::capture
