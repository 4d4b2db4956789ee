// SPDX-License-Identifier: Apache-2.0
//
// trace_summary FORMAT PATH: what a reader of traces made of a file, as JSON: counts, times by place, kernels, diagnostics,
// and the seconds that reading took. For tests with real frameworks, for benchmarks, and for looking.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <map>
#include <string_view>
#include <tuple>

#include "base/clock.h"
#include "base/small_file.h"
#include "base/text.h"
#include "formats/json_writer.h"
#include "ingest/nsys/nsys_trace.h"
#include "ingest/onnxruntime/onnxruntime_trace.h"
#include "ingest/tensorflow/tensorflow_trace.h"
#include "ingest/xplane/xplane_trace.h"

namespace {

using namespace joulemap;
using namespace joulemap::ingest;

struct Reader {
  std::string_view format;
  Result<Trace> (*read)(const std::string& path);
};
constexpr std::array kTraceReaders = {Reader{"xplane", read_xplane_trace},
                                      Reader{"onnxruntime", read_onnxruntime_trace},
                                      Reader{"tensorflow", read_tensorflow_trace}, Reader{"nsys", read_nsys_trace}};
constexpr std::array<std::string_view, 9> kEventKindNames = {"op",     "annotation", "module", "function", "api",
                                                             "kernel", "copy",       "fill",   "graph"};

struct CountAndTime {
  std::uint64_t count = 0;
  std::int64_t time_ns = 0;
};

void write_count_and_time(formats::JsonWriter& json, const CountAndTime& sum) {
  json.member("count", sum.count).member("time_ns", sum.time_ns);
}

class TraceSummary {
 public:
  explicit TraceSummary(const Trace& trace) : trace_(trace) {
    for (const std::vector<TraceEvent>& block : trace.event_blocks) {
      for (const TraceEvent& event : block) add(event);
    }
  }

  void write(formats::JsonWriter& json) const {
    json.key("kinds").begin_object();
    for (const auto& [kind, sum] : sums_by_kind_) {
      json.key(kEventKindNames[static_cast<std::size_t>(kind)]).begin_object();
      write_count_and_time(json, sum);
      json.end_object();
    }
    json.end_object().key("places").begin_array();
    for (const auto& [scope, sum] : scopes_) {
      json.begin_object().member("phase", scope.phase).member("module", scope.module).member("op", scope.op);
      write_count_and_time(json, sum);
      json.end_object();
    }
    json.end_array().key("names").begin_array();
    for (const auto& [name, sum] : names_) {
      json.begin_object()
          .member("kind", kEventKindNames[static_cast<std::size_t>(name.first)])
          .member("name", name.second);
      write_count_and_time(json, sum);
      json.end_object();
    }
    json.end_array();
  }

  std::int64_t first_ns = 0;

 private:
  void add(const TraceEvent& event) {
    const auto count = [&](CountAndTime& sum) {
      ++sum.count;
      sum.time_ns += event.duration_ns;
    };
    if (first_ns == 0 || event.start_ns < first_ns) first_ns = event.start_ns;
    count(sums_by_kind_[event.kind]);
    const bool is_gpu = is_on_gpu(event.kind);
    count(names_[{event.kind,
                  is_gpu ? trace_.kernel_classes[event.name_index].name : trace_.names[event.name_index].text}]);
    if (event.kind == EventKind::op) count(scopes_[trace_.names[event.name_index].scope]);
    if (is_gpu && trace_.gpu_events_identify_ops) {
      count(scopes_[event.external_id == 0 ? scopes::OpScope{} : trace_.names[event.external_id - 1].scope]);
    }
  }

  const Trace& trace_;
  std::map<EventKind, CountAndTime> sums_by_kind_;
  std::map<std::pair<EventKind, std::string>, CountAndTime> names_;
  std::map<scopes::OpScope, CountAndTime> scopes_;
};

// Not that of getrusage, which a program inherits from who started it.
std::int64_t peak_rss_bytes() {
  const Result<std::string> status = read_small_file("/proc/self/status");
  const std::size_t position = status ? status->find("VmHWM:") : std::string::npos;
  if (position == std::string::npos) return 0;
  const std::vector<std::string_view> words = split_whitespace(std::string_view(*status).substr(position, 64));
  return static_cast<std::int64_t>(parse_u64(words.at(1)).value_or(0)) * 1024;
}

std::string format_summary(const Trace& trace, double read_s, double cpu_s) {
  const std::int64_t peak_bytes = peak_rss_bytes();
  const TraceSummary summary(trace);
  formats::JsonWriter json;
  json.begin_object()
      .member("format", trace.format)
      .member("read_s", read_s)
      .member("cpu_s", cpu_s)
      .member("peak_rss_bytes", peak_bytes);
  json.member("unix_time", trace.clock == TraceClock::unix_time).member("first_ns", summary.first_ns);
  json.member("process", trace.process).member("events_read", trace.read_event_count);
  json.member("events_dropped", trace.dropped_event_count).member("threads", std::uint64_t{trace.threads.size()});
  json.key("queues").begin_array();
  for (const KernelQueue& queue : trace.kernel_queues) {
    json.begin_object().member("device", queue.device).member("ordinal", std::uint64_t{queue.ordinal});
    json.member("stream", std::uint64_t{queue.stream}).end_object();
  }
  json.end_array().key("facts").begin_object();
  for (const EnvironmentFact& fact : trace.environment) json.member(fact.name, fact.value);
  json.end_object();
  summary.write(json);
  json.key("diagnostics").begin_array();
  for (const Diagnostic& diagnostic : trace.diagnostics.list()) {
    json.begin_object()
        .member("code", diagnostic.code)
        .member("count", diagnostic.count)
        .member("message", diagnostic.message);
    json.end_object();
  }
  json.end_array().end_object();
  return std::move(json).text();
}

}  // namespace

int main(int argc, char** argv) {
  for (const Reader& reader : kTraceReaders) {
    if (argc != 3 || reader.format != argv[1]) continue;
    const std::int64_t begin_ns = monotonic_ns();
    const std::int64_t begin_cpu_ns = process_cpu_ns();
    const Result<Trace> trace = reader.read(argv[2]);
    const double read_s = seconds(monotonic_ns() - begin_ns);
    const double cpu_s = seconds(process_cpu_ns() - begin_cpu_ns);
    if (!trace) {
      fmt::print(stderr, "{}\n{}\n", trace.error().message, trace.error().remedy);
      return 1;
    }
    fmt::print("{}\n", format_summary(*trace, read_s, cpu_s));
    return 0;
  }
  fmt::print(stderr, "usage: trace_summary xplane|onnxruntime|tensorflow|nsys PATH\n");
  return 2;
}
