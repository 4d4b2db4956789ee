// SPDX-License-Identifier: Apache-2.0
#include "ingest/tensorflow/tensorflow_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "base/text.h"
#include "ingest/kernel_details.h"
#include "ingest/tensorflow/node_executions.h"
#include "ingest/trace_builder.h"
#include "ingest/trace_file.h"
#include "scopes/tensor_text.h"

namespace joulemap::ingest {
namespace {

// The year 2001. Smaller times are not Unix times.
constexpr std::int64_t kEarliestUnix_ns = 1'000'000'000 * std::int64_t{1'000'000'000};
constexpr std::string_view kForwardPhase = "forward";
constexpr std::string_view kAllStreamsName = "all";
constexpr std::string_view kStepNamePrefix =
    "ProfilerStep#";  // PyTorch's name of a step, which scope_assignment/ recognizes

enum class TensorFlowDeviceKind : std::uint8_t { host, stream, all_streams_device, memcpy_device, unknown };

struct ParsedDeviceName {
  TensorFlowDeviceKind kind = TensorFlowDeviceKind::unknown;
  std::string device_path;           // ".../device:GPU:0"
  std::uint32_t device_ordinal = 0;  // number of the GPU
  std::uint32_t stream_number = 0;
};

// Parses the name of a device: ".../device:GPU:0/stream:13", "/gpu:0/memcpy", ".../device:CPU:0".
ParsedDeviceName parse_device_name(std::string_view name) {
  ParsedDeviceName device;
  const std::size_t stream = name.find("/stream:");
  const std::size_t copies = name.find("/memcpy");
  device.device_path = name.substr(0, std::min(stream, copies));
  for (const std::string_view key : {"device:GPU:", "/gpu:", "GPU:"}) {
    const std::size_t key_position = device.device_path.rfind(key);
    if (key_position == std::string::npos) continue;
    device.device_ordinal =
        parse_leading_number(std::string_view(device.device_path).substr(key_position + key.size()));
    break;
  }
  if (stream != std::string_view::npos) {
    const std::string_view stream_name = name.substr(stream + std::string_view("/stream:").size());
    device.kind = stream_name.starts_with(kAllStreamsName) ? TensorFlowDeviceKind::all_streams_device
                                                           : TensorFlowDeviceKind::stream;
    device.stream_number = parse_leading_number(stream_name);
  } else if (copies != std::string_view::npos) {
    device.kind = TensorFlowDeviceKind::memcpy_device;
  } else {
    device.kind = TensorFlowDeviceKind::host;
  }
  return device;
}

bool is_operation_name(std::string_view node, std::string_view op) {
  return !node.empty() && node != "_SOURCE" && node != "_SINK" &&
         op.find("StreamSynchronize") == std::string_view::npos &&
         node.find("StreamSynchronize") == std::string_view::npos;
}

bool is_copy_kernel(std::string_view name) {
  return name.starts_with("MEMCPY") || name.starts_with("Memcpy") || name.starts_with("memcpy");
}

bool is_fill_kernel(std::string_view name) {
  return name.starts_with("MEMSET") || name.starts_with("Memset") || name.starts_with("memset");
}

// The kernel name without its launch details: "volta_sgemm_128x64" from "volta_sgemm_128x64 regs:...".
std::string_view remove_launch_details(std::string_view text) {
  text = trim(text);
  const std::size_t sizes = std::min(text.find(" regs"), text.find(" grid"));
  return trim(text.substr(0, sizes));
}

class TensorFlowTraceConverter {
 public:
  explicit TensorFlowTraceConverter(const NodeExecutions& rows) : rows_(rows) {}

  Trace run() {
    std::vector<NodeExecution> sorted_rows = rows_.rows;
    std::stable_sort(sorted_rows.begin(), sorted_rows.end(),
                     [](const NodeExecution& a, const NodeExecution& b) { return a.start_ns < b.start_ns; });
    for (const NodeExecution& row : sorted_rows) {
      const ParsedDeviceName& device = device_of_row(row);
      if (device.kind == TensorFlowDeviceKind::stream) devices_with_streams_.insert(device.device_path);
    }
    for (const NodeExecution& row : sorted_rows) add(row);
    add_steps(sorted_rows);
    builder_.trace().gpu_events_identify_ops = true;
    // The median: a damaged time must not decide.
    if (!sorted_rows.empty() && sorted_rows[sorted_rows.size() / 2].start_ns < kEarliestUnix_ns) {
      builder_.trace().clock = TraceClock::since_start;
    }
    report_dropped_rows();
    return std::move(builder_).finish();
  }

 private:
  // A virtual thread whose rows do not overlap.
  struct HostLane {
    std::int64_t end_ns = 0;
    std::uint32_t track = 0;
  };

  // Each step lasts from its first to its last row. Steps are numbered in order of time: files may come in any order.
  void add_steps(const std::vector<NodeExecution>& sorted_rows) {
    std::vector<TraceEvent> steps(rows_.steps);
    std::vector<std::uint32_t> step_numbers_by_time;
    for (const NodeExecution& row : sorted_rows) {
      TraceEvent& step = steps[row.step];
      if (step.kind != EventKind::annotation) {
        step = {.start_ns = row.start_ns, .kind = EventKind::annotation};
        step_numbers_by_time.push_back(row.step);
      }
      const std::int64_t end_ns = row.start_ns + std::max<std::int64_t>(row.duration_ns, 0);
      step.duration_ns = std::max(step.duration_ns, end_ns - step.start_ns);
    }
    if (step_numbers_by_time.empty()) return;
    const std::uint32_t track = builder_.intern_thread(0, threads_++);
    builder_.trace().threads[track].name = "steps";
    for (std::size_t number = 0; number < step_numbers_by_time.size(); ++number) {
      TraceEvent& step = steps[step_numbers_by_time[number]];
      step.name_index = builder_.intern_name(fmt::format("{}{}", kStepNamePrefix, number));
      step.track_index = track;
      builder_.add_event(step);
    }
  }

  const ParsedDeviceName& device_of_row(const NodeExecution& row) {
    const auto [slot, is_new] = devices_.try_emplace(row.device);
    if (is_new) slot->second = parse_device_name(rows_.interned_texts[row.device]);
    return slot->second;
  }

  void add(const NodeExecution& row) {
    const ParsedDeviceName& device = device_of_row(row);
    if (!is_operation_name(rows_.interned_texts[row.node], rows_.interned_texts[row.op]))
      return builder_.add_skipped_events();
    if (device.kind == TensorFlowDeviceKind::host) return add_host_row(row);
    const bool is_duplicate =
        device.kind != TensorFlowDeviceKind::stream && devices_with_streams_.contains(device.device_path);
    if (is_duplicate) return builder_.add_skipped_events();
    add_gpu_row(row, device);
  }

  void add_host_row(const NodeExecution& row) {
    TraceEvent trace_event{
        .start_ns = row.start_ns, .duration_ns = row.duration_ns, .name_index = intern_node_scope(row)};
    trace_event.track_index = find_free_lane(row);
    builder_.add_event(trace_event);
  }

  void add_gpu_row(const NodeExecution& row, const ParsedDeviceName& device) {
    TraceEvent trace_event{
        .start_ns = row.start_ns, .duration_ns = row.duration_ns, .external_id = intern_node_scope(row) + 1};
    const std::string_view text = rows_.interned_texts[row.kernel];
    const std::string_view op =
        rows_.interned_texts[row.op].empty() ? rows_.interned_texts[row.node] : rows_.interned_texts[row.op];
    const std::string_view name = text.empty() ? op : remove_launch_details(text);
    trace_event.track_index = builder_.intern_queue({.ordinal = device.device_ordinal, .stream = device.stream_number});
    if (device.kind == TensorFlowDeviceKind::memcpy_device || is_copy_kernel(op) || is_copy_kernel(name)) {
      trace_event.kind = EventKind::copy;
      trace_event.name_index =
          builder_.intern_kernel_class(KernelKind::copy, parse_copy_direction(is_copy_kernel(op) ? op : name));
      trace_event.detail_index = builder_.intern_byte_count(parse_byte_count(text));
    } else if (is_fill_kernel(op) || is_fill_kernel(name)) {
      trace_event.kind = EventKind::fill;
      trace_event.name_index = builder_.intern_kernel_class(KernelKind::fill, kFillClassName);
      trace_event.detail_index = builder_.intern_byte_count(parse_byte_count(text));
    } else {
      trace_event.kind = EventKind::kernel;
      trace_event.name_index = builder_.intern_kernel_class(
          KernelKind::kernel, name, parse_launch_dimensions(text, "grid"), parse_launch_dimensions(text, "block"));
    }
    builder_.add_event(trace_event);
  }

  std::uint32_t intern_node_scope(const NodeExecution& row) {
    const auto [slot, is_new] = scope_by_node_.try_emplace({row.node, row.op, row.tensors}, 0);
    if (!is_new) return slot->second;
    const std::string& name = rows_.interned_texts[row.node];
    const std::string& op = rows_.interned_texts[row.op];
    scopes::OpScope scope = scopes::scope_of_tensorflow_op(name, op == "unknown" ? std::string_view() : op, {});
    // Names with a leading underscore are internal to the runtime: arguments, results, transfers.
    if (scope.phase.empty() && !name.starts_with('_')) scope.phase = kForwardPhase;
    scope.tensors =
        scopes::append_tensors_to_node(scopes::remove_call_name_parts(name), rows_.interned_texts[row.tensors]);
    return slot->second = builder_.intern_name(name, scope);
  }

  std::uint32_t find_free_lane(const NodeExecution& row) {
    std::vector<HostLane>& lanes = host_lanes_[row.device];
    const std::int64_t end_ns = row.start_ns + std::max<std::int64_t>(row.duration_ns, 0);
    for (HostLane& host_lane : lanes) {
      if (host_lane.end_ns > row.start_ns) continue;
      host_lane.end_ns = end_ns;
      return host_lane.track;
    }
    const std::uint32_t track = builder_.intern_thread(0, threads_++);
    builder_.trace().threads[track].name =
        fmt::format("{} #{}", to_valid_utf8(rows_.interned_texts[row.device]), lanes.size());
    lanes.push_back({end_ns, track});
    return track;
  }

  void report_dropped_rows() {
    builder_.add_skipped_events(rows_.skipped_event_count);
    if (rows_.damaged_message_count > 0) builder_.add_dropped_events("that are damaged", rows_.damaged_message_count);
    if (rows_.rows_without_time > 0) builder_.add_dropped_events("without a time", rows_.rows_without_time);
    if (rows_.rows_of_unnamed_device > 0)
      builder_.add_dropped_events("of a device that the trace does not name", rows_.rows_of_unnamed_device);
    if (rows_.is_truncated) builder_.add_diagnostic("trace_cut", "tensorflow: the end of the trace is missing");
  }

  const NodeExecutions& rows_;
  TraceBuilder builder_{"tensorflow"};
  std::map<std::uint32_t, ParsedDeviceName> devices_;
  std::set<std::string> devices_with_streams_;  // GPUs with individual streams
  std::map<std::uint32_t, std::vector<HostLane>> host_lanes_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t>
      scope_by_node_;  // by node, op and tensors
  std::int64_t threads_ = 0;
};

}  // namespace

namespace {

Status read_tensorflow_rows(std::string_view bytes, NodeExecutions& rows) {
  if (read_run_metadata(bytes, rows) || read_timeline(bytes, rows)) return Done{};
  return Error{ErrorCode::malformed, "neither a timeline nor a RunMetadata of TensorFlow",
               "pass the output of Timeline(...).generate_chrome_trace_format() or run_metadata.SerializeToString(); "
               "import profiles of TensorFlow 2 as xplane"};
}

}  // namespace

Result<Trace> read_tensorflow_trace_bytes(std::string_view bytes) {
  NodeExecutions rows;
  if (Status read_status = read_tensorflow_rows(bytes, rows); !read_status) return std::move(read_status).error();
  return TensorFlowTraceConverter(rows).run();
}

Result<Trace> read_tensorflow_traces(std::span<const std::string> paths) {
  NodeExecutions rows;
  Diagnostics damage;
  for (const std::string& path : paths) {
    Result<TraceBytes> bytes = read_trace_file(path);
    if (!bytes) return std::move(bytes).error();
    if (Status read_status = read_tensorflow_rows(bytes->view(), rows); !read_status)
      return std::move(read_status).error().with_context(path);
    bytes->report_damage(damage);
  }
  Trace trace = TensorFlowTraceConverter(rows).run();
  trace.diagnostics.add_all(damage);
  return trace;
}

Result<Trace> read_tensorflow_trace(const std::string& path) { return read_tensorflow_traces({&path, 1}); }

}  // namespace joulemap::ingest
