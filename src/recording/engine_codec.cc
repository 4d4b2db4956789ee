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
// Readers accept as many requests as entries.
constexpr std::size_t kEntriesPerPayload = std::size_t{1} << 17;
constexpr std::size_t kMaxEntriesPerPayload = kEntriesPerPayload + kMaxRequestsPerStep;
constexpr std::size_t kNameBytesPerPayload = std::size_t{1} << 20;

std::uint64_t signed_to_unsigned_bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }

// Predicts the context length of an entry: that of the request's previous entry plus the tokens of this one.
class ContextLengthPredictor {
 public:
  std::int64_t predict(const StepRequest& entry) {
    return context_tokens_by_request_[entry.request] + entry.prompt_tokens + entry.cached_tokens + entry.decoded_tokens;
  }
  void observe(const StepRequest& entry) { context_tokens_by_request_[entry.request] = entry.context_tokens; }

 private:
  std::unordered_map<std::uint32_t, std::int64_t> context_tokens_by_request_;
};

void write_engine_requests(WireWriter& out, std::span<const EngineRequest> requests) {
  out.write_varint(requests.size());
  WireWriter fields;
  for (const EngineRequest& request : requests) {
    fields.clear();
    fields.write_varint(request.number);
    for (const std::string* text : {&request.id, &request.tenant, &request.model})
      fields.write_text(std::string_view(*text).substr(0, kMaxTextBytes));
    out.write_text(fields.bytes());
  }
}

void write_engine_steps(WireWriter& out, std::span<const EngineStep> steps) {
  out.write_varint(steps.size());
  std::vector<std::uint64_t> values(steps.size());
  std::ranges::transform(steps, values.begin(),
                         [](const EngineStep& step) { return signed_to_unsigned_bits(step.begin_ns); });
  encode_column(out, values);
  std::ranges::transform(steps, values.begin(), [](const EngineStep& step) {
    return signed_to_unsigned_bits(step.end_ns) - signed_to_unsigned_bits(step.begin_ns);
  });
  encode_column(out, values);
  out.write_varints(steps, [](const EngineStep& step) { return std::uint64_t{step.requests}; });
}

void write_step_requests(WireWriter& out, std::span<const StepRequest> entries) {
  out.write_varint(entries.size());
  std::int64_t previous_request = 0;
  for (const StepRequest& entry : entries) {
    out.write_signed_varint(entry.request - previous_request);
    previous_request = entry.request;
  }
  for (const auto member : {&StepRequest::prompt_tokens, &StepRequest::cached_tokens, &StepRequest::decoded_tokens,
                            &StepRequest::rejected_tokens}) {
    out.write_varints(entries, [member](const StepRequest& entry) { return std::uint64_t{entry.*member}; });
  }
  ContextLengthPredictor prediction;
  for (const StepRequest& entry : entries) {
    out.write_signed_varint(entry.context_tokens - prediction.predict(entry));
    prediction.observe(entry);
  }
  for (const StepRequest& entry : entries) out.write_u8(entry.events);
}

std::uint32_t read_u32_or_fail(WireReader& reader, std::int64_t value) {
  if (value < 0 || value > std::numeric_limits<std::uint32_t>::max()) reader.mark_as_failed();
  return static_cast<std::uint32_t>(value);
}
std::uint32_t read_u32_or_fail(WireReader& reader) {
  const std::uint64_t value = reader.read_varint();
  if (value > std::numeric_limits<std::uint32_t>::max()) reader.mark_as_failed();
  return static_cast<std::uint32_t>(value);
}

std::vector<EngineRequest> read_engine_requests(WireReader& reader) {
  const std::size_t count = reader.read_count();
  if (count > kMaxEntriesPerPayload) reader.mark_as_failed();
  std::vector<EngineRequest> requests;  // grows: a wrong count must not cause an allocation
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    WireReader fields = reader.read_record();
    EngineRequest& request = requests.emplace_back();
    request.number = read_u32_or_fail(fields);
    request.id = fields.read_text();
    request.tenant = fields.read_text();
    request.model = fields.read_text();
    if (!fields.ok()) reader.mark_as_failed();
  }
  return requests;
}

std::vector<EngineStep> read_engine_steps(WireReader& reader) {
  const std::uint64_t count = reader.read_varint();
  if (!reader.ok() || count > kMaxEntriesPerPayload) {
    reader.mark_as_failed();
    return {};
  }
  std::vector<EngineStep> steps(static_cast<std::size_t>(count));
  const std::vector<std::uint64_t> begins = decode_column(reader, steps.size());
  const std::vector<std::uint64_t> durations = decode_column(reader, steps.size());
  if (!reader.ok()) return {};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].begin_ns = static_cast<std::int64_t>(begins[i]);
    steps[i].end_ns = static_cast<std::int64_t>(begins[i] + durations[i]);
    steps[i].requests = read_u32_or_fail(reader);
    if (steps[i].requests > kMaxRequestsPerStep) reader.mark_as_failed();
  }
  return steps;
}

std::vector<StepRequest> read_step_requests(WireReader& reader) {
  const std::size_t count = reader.read_count();
  if (count > kMaxEntriesPerPayload) reader.mark_as_failed();
  if (!reader.ok()) return {};
  std::vector<StepRequest> entries(count);
  std::uint64_t request_number = 0;
  for (StepRequest& entry : entries) {
    request_number += signed_to_unsigned_bits(reader.read_signed_varint());
    entry.request = read_u32_or_fail(reader, static_cast<std::int64_t>(request_number));
  }
  for (const auto member : {&StepRequest::prompt_tokens, &StepRequest::cached_tokens, &StepRequest::decoded_tokens,
                            &StepRequest::rejected_tokens}) {
    for (StepRequest& entry : entries) entry.*member = read_u32_or_fail(reader);
  }
  ContextLengthPredictor prediction;
  for (StepRequest& entry : entries) {
    const std::uint64_t context =
        signed_to_unsigned_bits(prediction.predict(entry)) + signed_to_unsigned_bits(reader.read_signed_varint());
    entry.context_tokens = read_u32_or_fail(reader, static_cast<std::int64_t>(context));
    prediction.observe(entry);
  }
  for (StepRequest& entry : entries) entry.events = reader.read_u8() & kRequestEventMask;
  return entries;
}

std::string encode_engine_payload(std::span<const EngineRequest> requests, std::span<const EngineStep> steps,
                                  std::span<const StepRequest> entries) {
  WireWriter out;
  write_engine_requests(out, requests);
  write_engine_steps(out, steps);
  write_step_requests(out, entries);
  return std::move(out).take_bytes();
}

}  // namespace

std::vector<std::string> encode_engine_steps(const EngineSteps& batch) {
  std::vector<std::string> payloads;
  std::span<const EngineRequest> requests = batch.requests;
  while (!requests.empty()) {
    std::size_t count = 0;
    for (std::size_t bytes = 0; count < requests.size() && bytes < kNameBytesPerPayload; ++count)
      bytes += requests[count].id.size() + requests[count].tenant.size() + requests[count].model.size() + 16;
    payloads.push_back(encode_engine_payload(requests.first(count), {}, {}));
    requests = requests.subspan(count);
  }
  std::span<const EngineStep> steps = batch.steps;
  std::span<const StepRequest> entries = batch.entries;
  while (!steps.empty()) {
    std::size_t count = 0;
    std::size_t rows = 0;
    for (; count < steps.size() && rows < kEntriesPerPayload && count < kEntriesPerPayload; ++count) {
      JOULEMAP_CHECK(steps[count].requests <= kMaxRequestsPerStep, "too many requests in a step");
      rows += steps[count].requests;
    }
    payloads.push_back(encode_engine_payload({}, steps.first(count), entries.first(rows)));
    steps = steps.subspan(count);
    entries = entries.subspan(rows);
  }
  return payloads;
}

std::optional<EngineSteps> decode_engine_steps(std::string_view payload) {
  WireReader in(payload);
  EngineSteps batch;
  batch.requests = read_engine_requests(in);
  if (in.ok()) batch.steps = read_engine_steps(in);
  if (in.ok()) batch.entries = read_step_requests(in);
  std::uint64_t rows = 0;
  for (const EngineStep& step : batch.steps) rows += step.requests;
  if (!in.ok() || rows != batch.entries.size()) return std::nullopt;
  return batch;
}

}  // namespace joulemap::recording
