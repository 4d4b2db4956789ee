// SPDX-License-Identifier: Apache-2.0
#include "recording/engine_codec.h"

#include <algorithm>
#include <limits>
#include <span>
#include <unordered_map>

#include "base/check.h"
#include "recording/column.h"
#include "recording/record_codec.h"
#include "recording/wire.h"

namespace joulemap::recording {
namespace {

// A payload ends after this many entries, requests or bytes of their names. The largest payload of a chunk is 16 MiB.
constexpr std::size_t kComfortableEntries = std::size_t{1} << 17;
constexpr std::size_t kMaxRows = kComfortableEntries + kMaxRequestsPerStep;
constexpr std::size_t kComfortableNameBytes = std::size_t{1} << 20;

std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }

// Predicts the context length of an entry: that of the request's previous entry plus the tokens of this one.
class ContextPrediction {
 public:
  std::int64_t expected(const StepRequest& entry) {
    return last_[entry.request] + entry.prompt_tokens + entry.cached_tokens + entry.decoded_tokens;
  }
  void observe(const StepRequest& entry) { last_[entry.request] = entry.context_tokens; }

 private:
  std::unordered_map<std::uint32_t, std::int64_t> last_;
};

void put_requests(WireWriter& out, std::span<const EngineRequest> requests) {
  out.varint(requests.size());
  WireWriter fields;
  for (const EngineRequest& request : requests) {
    fields.clear();
    fields.varint(request.number);
    for (const std::string* text : {&request.id, &request.tenant, &request.model})
      fields.text(std::string_view(*text).substr(0, kMaxTextBytes));
    out.text(fields.bytes());
  }
}

void put_steps(WireWriter& out, std::span<const EngineStep> steps) {
  out.varint(steps.size());
  std::vector<std::uint64_t> values(steps.size());
  std::ranges::transform(steps, values.begin(), [](const EngineStep& step) { return bits(step.begin_ns); });
  encode_column(out, values);
  std::ranges::transform(steps, values.begin(),
                         [](const EngineStep& step) { return bits(step.end_ns) - bits(step.begin_ns); });
  encode_column(out, values);
  out.varints(steps, [](const EngineStep& step) { return std::uint64_t{step.requests}; });
}

void put_entries(WireWriter& out, std::span<const StepRequest> entries) {
  out.varint(entries.size());
  std::int64_t last = 0;
  for (const StepRequest& entry : entries) {
    out.svarint(entry.request - last);
    last = entry.request;
  }
  for (const auto member : {&StepRequest::prompt_tokens, &StepRequest::cached_tokens, &StepRequest::decoded_tokens,
                            &StepRequest::rejected_tokens}) {
    out.varints(entries, [member](const StepRequest& entry) { return std::uint64_t{entry.*member}; });
  }
  ContextPrediction prediction;
  for (const StepRequest& entry : entries) {
    out.svarint(entry.context_tokens - prediction.expected(entry));
    prediction.observe(entry);
  }
  for (const StepRequest& entry : entries) out.u8(entry.events);
}

std::uint32_t take_u32(WireReader& in, std::int64_t value) {
  if (value < 0 || value > std::numeric_limits<std::uint32_t>::max()) in.fail();
  return static_cast<std::uint32_t>(value);
}
std::uint32_t take_u32(WireReader& in) {
  const std::uint64_t value = in.varint();
  if (value > std::numeric_limits<std::uint32_t>::max()) in.fail();
  return static_cast<std::uint32_t>(value);
}

std::vector<EngineRequest> take_requests(WireReader& in) {
  std::vector<EngineRequest> requests(in.count());
  for (EngineRequest& request : requests) {
    WireReader fields = in.record();
    request.number = take_u32(fields);
    request.id = fields.text();
    request.tenant = fields.text();
    request.model = fields.text();
    if (!fields.ok()) in.fail();
    if (!in.ok()) break;
  }
  return requests;
}

std::vector<EngineStep> take_steps(WireReader& in) {
  const std::uint64_t count = in.varint();
  if (!in.ok() || count > kMaxRows) {
    in.fail();
    return {};
  }
  std::vector<EngineStep> steps(static_cast<std::size_t>(count));
  const std::vector<std::uint64_t> begins = decode_column(in, steps.size());
  const std::vector<std::uint64_t> durations = decode_column(in, steps.size());
  if (!in.ok()) return {};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].begin_ns = static_cast<std::int64_t>(begins[i]);
    steps[i].end_ns = static_cast<std::int64_t>(begins[i] + durations[i]);
    steps[i].requests = take_u32(in);
  }
  return steps;
}

std::vector<StepRequest> take_entries(WireReader& in) {
  const std::size_t count = in.count();
  if (count > kMaxRows) in.fail();
  if (!in.ok()) return {};
  std::vector<StepRequest> entries(count);
  std::uint64_t last = 0;
  for (StepRequest& entry : entries) {
    last += bits(in.svarint());
    entry.request = take_u32(in, static_cast<std::int64_t>(last));
  }
  for (const auto member : {&StepRequest::prompt_tokens, &StepRequest::cached_tokens, &StepRequest::decoded_tokens,
                            &StepRequest::rejected_tokens}) {
    for (StepRequest& entry : entries) entry.*member = take_u32(in);
  }
  ContextPrediction prediction;
  for (StepRequest& entry : entries) {
    const std::uint64_t context = bits(prediction.expected(entry)) + bits(in.svarint());
    entry.context_tokens = take_u32(in, static_cast<std::int64_t>(context));
    prediction.observe(entry);
  }
  for (StepRequest& entry : entries) entry.events = in.u8() & kRequestEvents;
  return entries;
}

std::string payload_of(std::span<const EngineRequest> requests, std::span<const EngineStep> steps,
                       std::span<const StepRequest> entries) {
  WireWriter out;
  put_requests(out, requests);
  put_steps(out, steps);
  put_entries(out, entries);
  return std::move(out).take();
}

}  // namespace

std::vector<std::string> encode_engine_steps(const EngineSteps& batch) {
  std::vector<std::string> payloads;
  std::span<const EngineRequest> requests = batch.requests;
  while (!requests.empty()) {
    std::size_t count = 0;
    for (std::size_t bytes = 0; count < requests.size() && bytes < kComfortableNameBytes; ++count)
      bytes += requests[count].id.size() + requests[count].tenant.size() + requests[count].model.size() + 16;
    payloads.push_back(payload_of(requests.first(count), {}, {}));
    requests = requests.subspan(count);
  }
  std::span<const EngineStep> steps = batch.steps;
  std::span<const StepRequest> entries = batch.entries;
  while (!steps.empty()) {
    std::size_t count = 0;
    std::size_t rows = 0;
    for (; count < steps.size() && rows < kComfortableEntries && count < kComfortableEntries; ++count) {
      JOULEMAP_CHECK(steps[count].requests <= kMaxRequestsPerStep, "too many requests in a step");
      rows += steps[count].requests;
    }
    payloads.push_back(payload_of({}, steps.first(count), entries.first(rows)));
    steps = steps.subspan(count);
    entries = entries.subspan(rows);
  }
  return payloads;
}

std::optional<EngineSteps> decode_engine_steps(std::string_view payload) {
  WireReader in(payload);
  EngineSteps batch;
  batch.requests = take_requests(in);
  if (in.ok()) batch.steps = take_steps(in);
  if (in.ok()) batch.entries = take_entries(in);
  std::uint64_t rows = 0;
  for (const EngineStep& step : batch.steps) rows += step.requests;
  if (!in.ok() || rows != batch.entries.size()) return std::nullopt;
  return batch;
}

}  // namespace joulemap::recording
