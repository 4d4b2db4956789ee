// SPDX-License-Identifier: Apache-2.0
//
// Forward steps of a serving engine, as the engine reports them: which requests each step contained, and what it
// computed for each of them. Plain data; times are CLOCK_MONOTONIC nanoseconds. Numbers of requests are local to the
// process (the source of the recording) that assigned them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace joulemap {

// A request as the engine names it. A later request may have the same id; it has another number.
struct EngineRequest {
  std::uint32_t number = 0;
  std::string id;
  std::string tenant;  // like `model`: empty if the engine reports none
  std::string model;
};

// What happened to a request at the end of a step: bits of StepRequest::events.
inline constexpr std::uint8_t kRequestFinished = 1;
inline constexpr std::uint8_t kRequestPreempted = 2;  // its KV cache was dropped and must be computed again
inline constexpr std::uint8_t kRequestAborted = 4;
inline constexpr std::uint8_t kRequestEventMask = kRequestFinished | kRequestPreempted | kRequestAborted;

// The part of one request in one step, in tokens.
struct StepRequest {
  std::uint32_t request = 0;          // EngineRequest::number
  std::uint32_t prompt_tokens = 0;    // prompt tokens that the step computed: the prompt, or a chunk of it
  std::uint32_t cached_tokens = 0;    // prompt tokens taken from a prefix cache, in the first step of the request
  std::uint32_t decoded_tokens = 0;   // tokens that the step generated
  std::uint32_t rejected_tokens = 0;  // speculative tokens that the step computed in vain
  std::uint32_t context_tokens = 0;   // length of the KV cache after the step
  std::uint8_t events = 0;
};

// Limit of the number of requests in a step.
inline constexpr std::size_t kMaxRequestsPerStep = std::size_t{1} << 16;

// One forward step. A step without duration contains only events, such as the abort of a waiting request.
struct EngineStep {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t requests = 0;  // number of its entries
};

struct EngineSteps {
  std::vector<EngineRequest> requests;  // that are new since the last batch
  std::vector<EngineStep> steps;
  std::vector<StepRequest> entries;  // of all steps, in their order

  bool empty() const { return requests.empty() && steps.empty(); }
};

}  // namespace joulemap
