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
#include "ingest/tensorflow/step_rows.h"
#include "ingest/trace_builder.h"
#include "ingest/trace_file.h"
#include "scopes/tensor_text.h"

namespace joulemap::ingest {
namespace {

// The year 2001. Smaller times are not Unix times.
constexpr std::int64_t kEarliestUnix_ns = 1'000'000'000 * std::int64_t{1'000'000'000};
constexpr std::string_view kForward = "forward";
constexpr std::string_view kAllStreams = "all";
constexpr std::string_view kStepName = "ProfilerStep#";  // PyTorch's name of a step, which scope_assignment/ recognizes

enum class DeviceKind : std::uint8_t { host, stream, all_streams, copies, unknown };

struct Device {
  DeviceKind kind = DeviceKind::unknown;
  std::string gpu;            // ".../device:GPU:0"
  std::uint32_t ordinal = 0;  // number of the GPU
  std::uint32_t stream = 0;
};

// Parses the name of a device: ".../device:GPU:0/stream:13", "/gpu:0/memcpy", ".../device:CPU:0".
Device device_named(std::string_view name) {
  Device device;
  const std::size_t stream = name.find("/stream:");
  const std::size_t copies = name.find("/memcpy");
  device.gpu = name.substr(0, std::min(stream, copies));
  for (const std::string_view key : {"device:GPU:", "/gpu:", "GPU:"}) {
    const std::size_t at = device.gpu.rfind(key);
    if (at == std::string::npos) continue;
    device.ordinal = parse_leading_number(std::string_view(device.gpu).substr(at + key.size()));
    break;
  }
  if (stream != std::string_view::npos) {
    const std::string_view which = name.substr(stream + std::string_view("/stream:").size());
    device.kind = which.starts_with(kAllStreams) ? DeviceKind::all_streams : DeviceKind::stream;
    device.stream = parse_leading_number(which);
  } else if (copies != std::string_view::npos) {
    device.kind = DeviceKind::copies;
  } else {
    device.kind = DeviceKind::host;
  }
  return device;
}

bool is_operation(std::string_view node, std::string_view op) {
  return !node.empty() && node != "_SOURCE" && node != "_SINK" &&
         op.find("StreamSynchronize") == std::string_view::npos &&
         node.find("StreamSynchronize") == std::string_view::npos;
}

bool is_copy(std::string_view name) {
  return name.starts_with("MEMCPY") || name.starts_with("Memcpy") || name.starts_with("memcpy");
}

bool is_fill(std::string_view name) {
  return name.starts_with("MEMSET") || name.starts_with("Memset") || name.starts_with("memset");
}

// The kernel name without its launch details: "volta_sgemm_128x64" from "volta_sgemm_128x64 regs:...".
std::string_view kernel_name(std::string_view text) {
  text = trim(text);
  const std::size_t sizes = std::min(text.find(" regs"), text.find(" grid"));
  return trim(text.substr(0, sizes));
}

class TraceConversion {
 public:
  explicit TraceConversion(const StepRows& rows) : rows_(rows) {}

  Trace run() {
    std::vector<StepRow> ordered = rows_.rows;
    std::stable_sort(ordered.begin(), ordered.end(),
                     [](const StepRow& a, const StepRow& b) { return a.start_ns < b.start_ns; });
    for (const StepRow& row : ordered) {
      const Device& device = device_of(row);
      if (device.kind == DeviceKind::stream) have_streams_.insert(device.gpu);
    }
    for (const StepRow& row : ordered) add(row);
    add_steps(ordered);
    builder_.trace().gpu_events_identify_ops = true;
    // The median: a damaged time must not decide.
    if (!ordered.empty() && ordered[ordered.size() / 2].start_ns < kEarliestUnix_ns) {
      builder_.trace().clock = TraceClock::since_start;
    }
    report_dropped_rows();
    return std::move(builder_).finish();
  }

 private:
  // A virtual thread whose rows do not overlap.
  struct Lane {
    std::int64_t end_ns = 0;
    std::uint32_t track = 0;
  };

  // Each step lasts from its first to its last row. Steps are numbered in order of time: files may come in any order.
  void add_steps(const std::vector<StepRow>& ordered) {
    std::vector<TraceEvent> steps(rows_.steps);
    std::vector<std::uint32_t> in_order;
    for (const StepRow& row : ordered) {
      TraceEvent& step = steps[row.step];
      if (step.kind != EventKind::annotation) {
        step = {.start_ns = row.start_ns, .kind = EventKind::annotation};
        in_order.push_back(row.step);
      }
      const std::int64_t end_ns = row.start_ns + std::max<std::int64_t>(row.duration_ns, 0);
      step.duration_ns = std::max(step.duration_ns, end_ns - step.start_ns);
    }
    if (in_order.empty()) return;
    const std::uint32_t track = builder_.thread(0, threads_++);
    builder_.trace().threads[track].name = "steps";
    for (std::size_t number = 0; number < in_order.size(); ++number) {
      TraceEvent& step = steps[in_order[number]];
      step.name = builder_.name(fmt::format("{}{}", kStepName, number));
      step.track = track;
      builder_.add(step);
    }
  }

  const Device& device_of(const StepRow& row) {
    const auto [slot, is_new] = devices_.try_emplace(row.device);
    if (is_new) slot->second = device_named(rows_.texts[row.device]);
    return slot->second;
  }

  void add(const StepRow& row) {
    const Device& device = device_of(row);
    if (!is_operation(rows_.texts[row.node], rows_.texts[row.op])) return builder_.count_skipped();
    if (device.kind == DeviceKind::host) return add_on_host(row);
    const bool is_duplicate = device.kind != DeviceKind::stream && have_streams_.contains(device.gpu);
    if (is_duplicate) return builder_.count_skipped();
    add_on_gpu(row, device);
  }

  void add_on_host(const StepRow& row) {
    TraceEvent made{.start_ns = row.start_ns, .duration_ns = row.duration_ns, .name = node(row)};
    made.track = lane(row);
    builder_.add(made);
  }

  void add_on_gpu(const StepRow& row, const Device& device) {
    TraceEvent made{.start_ns = row.start_ns, .duration_ns = row.duration_ns, .external_id = node(row) + 1};
    const std::string_view text = rows_.texts[row.kernel];
    const std::string_view op = rows_.texts[row.op].empty() ? rows_.texts[row.node] : rows_.texts[row.op];
    const std::string_view name = text.empty() ? op : kernel_name(text);
    made.track = builder_.queue({.ordinal = device.ordinal, .stream = device.stream});
    if (device.kind == DeviceKind::copies || is_copy(op) || is_copy(name)) {
      made.kind = EventKind::copy;
      made.name = builder_.kernel_class(KernelKind::copy, parse_copy_direction(is_copy(op) ? op : name));
      made.detail = builder_.bytes(parse_byte_count(text));
    } else if (is_fill(op) || is_fill(name)) {
      made.kind = EventKind::fill;
      made.name = builder_.kernel_class(KernelKind::fill, kFillClassName);
      made.detail = builder_.bytes(parse_byte_count(text));
    } else {
      made.kind = EventKind::kernel;
      made.name = builder_.kernel_class(KernelKind::kernel, name, parse_dimensions(text, "grid"),
                                        parse_dimensions(text, "block"));
    }
    builder_.add(made);
  }

  std::uint32_t node(const StepRow& row) {
    const auto [slot, is_new] = nodes_.try_emplace({row.node, row.op, row.tensors}, 0);
    if (!is_new) return slot->second;
    const std::string& name = rows_.texts[row.node];
    const std::string& op = rows_.texts[row.op];
    scopes::OpScope scope = scopes::scope_of_tensorflow_op(name, op == "unknown" ? std::string_view() : op, {});
    // Names with a leading underscore are internal to the runtime: arguments, results, transfers.
    if (scope.phase.empty() && !name.starts_with('_')) scope.phase = kForward;
    scope.tensors = scopes::node_with_tensors(scopes::tensorflow_node(name), rows_.texts[row.tensors]);
    return slot->second = builder_.name(name, scope);
  }

  std::uint32_t lane(const StepRow& row) {
    std::vector<Lane>& lanes = lanes_[row.device];
    const std::int64_t end_ns = row.start_ns + std::max<std::int64_t>(row.duration_ns, 0);
    for (Lane& known : lanes) {
      if (known.end_ns > row.start_ns) continue;
      known.end_ns = end_ns;
      return known.track;
    }
    const std::uint32_t track = builder_.thread(0, threads_++);
    builder_.trace().threads[track].name = fmt::format("{} #{}", to_valid_utf8(rows_.texts[row.device]), lanes.size());
    lanes.push_back({end_ns, track});
    return track;
  }

  void report_dropped_rows() {
    builder_.count_skipped(rows_.skipped_events);
    if (rows_.damaged > 0) builder_.count_dropped("that are damaged", rows_.damaged);
    if (rows_.rows_without_time > 0) builder_.count_dropped("without a time", rows_.rows_without_time);
    if (rows_.rows_of_unnamed_device > 0)
      builder_.count_dropped("of a device that the trace does not name", rows_.rows_of_unnamed_device);
    if (rows_.is_truncated) builder_.add_diagnostic("trace_cut", "tensorflow: the end of the trace is missing");
  }

  const StepRows& rows_;
  TraceBuilder builder_{"tensorflow"};
  std::map<std::uint32_t, Device> devices_;
  std::set<std::string> have_streams_;  // GPUs with individual streams
  std::map<std::uint32_t, std::vector<Lane>> lanes_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> nodes_;  // by node, op and tensors
  std::int64_t threads_ = 0;
};

}  // namespace

namespace {

Status read_file(std::string_view bytes, StepRows& rows) {
  if (read_run_metadata(bytes, rows) || read_timeline(bytes, rows)) return Done{};
  return Error{ErrorCode::malformed, "neither a timeline nor a RunMetadata of TensorFlow",
               "pass the output of Timeline(...).generate_chrome_trace_format() or run_metadata.SerializeToString(); "
               "import profiles of TensorFlow 2 as xplane"};
}

}  // namespace

Result<Trace> read_tensorflow_trace_bytes(std::string_view bytes) {
  StepRows rows;
  if (Status read = read_file(bytes, rows); !read) return std::move(read).error();
  return TraceConversion(rows).run();
}

Result<Trace> read_tensorflow_traces(std::span<const std::string> paths) {
  StepRows rows;
  Diagnostics damage;
  for (const std::string& path : paths) {
    Result<TraceBytes> bytes = read_trace_file(path);
    if (!bytes) return std::move(bytes).error();
    if (Status read = read_file(bytes->view(), rows); !read) return std::move(read).error().with_context(path);
    bytes->report_damage(damage);
  }
  Trace trace = TraceConversion(rows).run();
  trace.diagnostics.add_all(damage);
  return trace;
}

Result<Trace> read_tensorflow_trace(const std::string& path) { return read_tensorflow_traces({&path, 1}); }

}  // namespace joulemap::ingest
