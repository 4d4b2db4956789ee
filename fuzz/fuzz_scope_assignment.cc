// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the parsers of power logs and module names, and the scope assignment of arbitrary events: no crash, and no
// time of a thread is lost, added or negative.
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "ingest/power_csv/power_log.h"
#include "ingest/scope_assignment/scope_assignment.h"
#include "scopes/module_names.h"

namespace {

using namespace joulemap;
using namespace joulemap::ingest;

template <class Number>
Number take_number(std::string_view& bytes) {
  Number number{};
  const std::size_t size = std::min(sizeof(number), bytes.size());
  std::memcpy(&number, bytes.data(), size);
  bytes.remove_prefix(size);
  return number;
}

Trace read_fuzzed_trace(std::string_view bytes) {
  Trace trace;
  trace.format = "kineto";
  for (const char* name : {"aten::mm", "nn.Module: A_0", "nn.Module: BLoss", "ProfilerStep#1", "nccl:all_reduce",
                           "Optimizer.step#SGD.step", "torch::autograd::AccumulateGrad",
                           "autograd::engine::evaluate_function: X", "f.py(1): _engine_run_backward"}) {
    trace.names.push_back({name, {}});
  }
  trace.names.push_back({"told", {"backward", "a", "dot"}});
  trace.threads.resize(3);
  trace.byte_counts = {0};
  trace.gpu_events_identify_ops = (take_number<std::uint8_t>(bytes) & 1) != 0;
  const bool has_arbitrary_times = (take_number<std::uint8_t>(bytes) & 1) != 0;
  while (!bytes.empty()) {
    TraceEvent event;
    event.start_ns = has_arbitrary_times ? take_number<std::int64_t>(bytes) : take_number<std::uint32_t>(bytes);
    event.duration_ns = has_arbitrary_times ? take_number<std::int64_t>(bytes) : take_number<std::uint32_t>(bytes);
    event.name_index = take_number<std::uint8_t>(bytes) % 12;
    event.track_index = take_number<std::uint8_t>(bytes) % 4;
    event.correlation = event.external_id = take_number<std::uint8_t>(bytes) % 16;
    event.detail_index = take_number<std::uint8_t>(bytes) % 8;
    event.kind = static_cast<EventKind>(take_number<std::uint8_t>(bytes) % 9);
    event.is_backward = event.detail_index % 3 == 1;
    if (trace.event_blocks.empty() || event.detail_index == 7) trace.event_blocks.emplace_back();
    trace.event_blocks.back().push_back(event);
  }
  return trace;
}

void check_scope_assignment(std::string_view bytes) {
  Trace trace = read_fuzzed_trace(bytes);
  std::int64_t thread_ns = 0;
  const ScopedTrace scoped_trace = assign_scopes(trace, {{"A", {"layer"}}}, [&](const Activity& activity) {
    JOULEMAP_CHECK(activity.begin_ns <= activity.end_ns, "a stretch that ends before it begins");
    for (const ScopeTally& tally : activity.scope_tallies) {
      JOULEMAP_CHECK(tally.wall_ns >= 0, "less time than none at a place");
      thread_ns += tally.wall_ns;
    }
    for (const KernelTally& tally : activity.kernel_tallies) JOULEMAP_CHECK(tally.time_ns >= 0, "less time than none");
  });
  JOULEMAP_CHECK(thread_ns == scoped_trace.thread_time_in_scopes_ns, "time was lost or made");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_scope_assignment(bytes);
  static_cast<void>(scopes::parse_module_names_json(bytes));
  if (const Result<PowerLog> log = parse_power_log(bytes, "log", 0)) {
    for (const Sample& sample : log->samples) JOULEMAP_CHECK(sample.channel < log->channels.size(), "no such channel");
    JOULEMAP_CHECK(log->dropped_row_count <= log->row_count + log->samples.size(), "more is dropped than there was");
  }
  return 0;
}
