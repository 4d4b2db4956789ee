// SPDX-License-Identifier: Apache-2.0
#include "ingest/onnxruntime/onnxruntime_trace.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "formats/json_objects.h"
#include "ingest/kernel_details.h"
#include "ingest/trace_builder.h"
#include "ingest/trace_file.h"
#include "scopes/tensor_text.h"

namespace joulemap::ingest {
namespace {

using formats::JsonFields;

constexpr std::string_view kKernelTimeNameSuffix = "_kernel_time";
constexpr std::string_view kStepNamePrefix =
    "ProfilerStep#";  // PyTorch's name of a step, which scope_assignment/ recognizes
constexpr double kNanosecondsPerMicrosecond = 1000;
constexpr double kMaxEventTime_us = 1e15;  // 30 years; larger values are invalid and could overflow
// ONNX Runtime records at most this many events: global_max_num_events_ in onnxruntime/core/common/profiler.cc.
constexpr std::uint64_t kMaxTraceEvents = 1'000'000;

std::optional<std::int64_t> event_time_ns(const JsonFields& event, std::string_view member) {
  const std::optional<double> number = event.number(member);
  if (!number || !(std::abs(*number) < kMaxEventTime_us)) return std::nullopt;
  if (const auto time_us = event.integer(member)) return *time_us * 1000;
  return std::llround(*number * kNanosecondsPerMicrosecond);
}

// Number of a member that is a string: "grid_x": "128"; 0 if it is missing.
std::uint32_t parse_number_member(const JsonFields& event, std::string_view member) {
  std::uint32_t number = 0;
  const std::string_view text = event.text(member);
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

class OnnxTraceConverter {
 public:
  void add(const JsonFields& event) {
    if (event.text("ph") != "X") return builder_.add_skipped_events();
    ++event_count_;
    const std::string_view category = event.text("cat");
    const std::string_view name = event.text("name");
    if (name.empty()) return builder_.add_dropped_events("without a name");
    const bool is_known = category == "Node" || category == "Session" || category == "Kernel" || category == "Api";
    are_events_from_onnxruntime_ |= is_known;
    TraceEvent trace_event;
    if (category == "Node" && name.ends_with(kKernelTimeNameSuffix)) {
      const std::string_view inputs = event.array("args.input_type_shape");
      store_node_inputs(name, inputs);
      trace_event.name_index = intern_node(name, event.text("args.op_name"), inputs);
      trace_event.track_index = intern_thread_of(event);
    } else if (category == "Session" && name == "model_run") {
      trace_event.kind = EventKind::annotation;
      trace_event.name_index = builder_.intern_name(fmt::format("{}{}", kStepNamePrefix, run_count_++));
      trace_event.track_index = intern_thread_of(event);
    } else if (category == "Kernel") {
      set_kernel_details(event, name, trace_event);
    } else {
      return builder_.add_skipped_events();
    }
    const std::optional<std::int64_t> start_ns = event_time_ns(event, "ts");
    const std::optional<std::int64_t> duration_ns = event_time_ns(event, "dur");
    if (!start_ns || !duration_ns) return builder_.add_dropped_events("without a time");
    trace_event.start_ns = *start_ns;
    trace_event.duration_ns = *duration_ns;
    builder_.add_event(trace_event);
  }

  Result<Trace> finish(const formats::JsonObjectsResult& parse_result) && {
    if (!parse_result.has_array ||
        !(are_events_from_onnxruntime_ || (event_count_ == 0 && parse_result.damaged_count == 0))) {
      return Error{ErrorCode::malformed, "not an ONNX Runtime profile",
                   "pass the file whose name session.end_profiling() returns"};
    }
    if (parse_result.damaged_count > 0) builder_.add_dropped_events("that are damaged", parse_result.damaged_count);
    if (!parse_result.has_array_ended) {
      builder_.add_diagnostic("trace_cut", "onnxruntime: the end of the profile is missing",
                              "call session.end_profiling() before the program ends");
    }
    if (event_count_ >= kMaxTraceEvents) {
      builder_.add_diagnostic(
          "trace_full",
          fmt::format(
              "onnxruntime: the profile contains {} events, and ONNX Runtime stops at {}: later runs are missing",
              event_count_, kMaxTraceEvents),
          "profile fewer runs");
    }
    builder_.trace().gpu_events_identify_ops = true;
    builder_.trace().process = process_id_;
    return std::move(builder_).finish();
  }

 private:
  std::uint32_t intern_thread_of(const JsonFields& event) {
    const std::int64_t process = event.integer("pid").value_or(0);
    if (!process_id_ && process > 0) process_id_ = process;
    return builder_.intern_thread(process, event.integer("tid").value_or(0));
  }

  std::uint32_t intern_node(std::string_view name, std::string_view type, std::string_view inputs) {
    if (name.ends_with(kKernelTimeNameSuffix)) name.remove_suffix(kKernelTimeNameSuffix.size());
    const auto [slot, is_new] = name_by_node_.try_emplace(fmt::format("{}\n{}\n{}", name, type, inputs), 0);
    if (is_new) {
      scopes::OpScope scope = scopes::scope_of_onnx_node(name, type);
      scope.tensors = scopes::parse_onnxruntime_tensors(inputs);
      slot->second = builder_.intern_name(name, scope);
    }
    return slot->second;
  }

  // The event of a kernel contains its node but not the node's inputs: they are known only if they never change.
  void store_node_inputs(std::string_view node, std::string_view inputs) {
    const auto [slot, is_new] =
        inputs_by_node_.try_emplace(std::string(node.substr(0, node.size() - kKernelTimeNameSuffix.size())), inputs);
    if (!is_new && slot->second != inputs) slot->second.clear();
  }
  std::string_view find_node_inputs(std::string_view node) const {
    if (node.ends_with(kKernelTimeNameSuffix)) node.remove_suffix(kKernelTimeNameSuffix.size());
    const auto node_inputs = inputs_by_node_.find(std::string(node));
    return node_inputs == inputs_by_node_.end() ? std::string_view() : std::string_view(node_inputs->second);
  }

  void set_kernel_details(const JsonFields& event, std::string_view name, TraceEvent& trace_event) {
    const bool is_copy_kernel = name.starts_with("Memcpy") || name.starts_with("memcpy");
    const auto size = [&](const std::array<std::string_view, 3>& members) {
      return std::array{parse_number_member(event, members[0]), parse_number_member(event, members[1]),
                        parse_number_member(event, members[2])};
    };
    trace_event.kind = is_copy_kernel ? EventKind::copy : EventKind::kernel;
    trace_event.name_index = is_copy_kernel
                                 ? builder_.intern_kernel_class(KernelKind::copy, parse_copy_direction(name))
                                 : builder_.intern_kernel_class(KernelKind::kernel, name,
                                                                size({"args.grid_x", "args.grid_y", "args.grid_z"}),
                                                                size({"args.block_x", "args.block_y", "args.block_z"}));
    trace_event.track_index = builder_.intern_queue({.stream = parse_number_member(event, "args.stream")});
    trace_event.correlation = parse_number_member(event, "args.correlation_id");
    const std::string_view parent = event.text("args.parent_name");
    if (!parent.empty())
      trace_event.external_id = intern_node(parent, event.text("args.op_name"), find_node_inputs(parent)) + 1;
  }

  TraceBuilder builder_{"onnxruntime", TraceClock::since_start};
  std::unordered_map<std::string, std::uint32_t> name_by_node_;
  std::unordered_map<std::string, std::string>
      inputs_by_node_;  // by node: types and shapes of inputs; empty: they vary
  std::optional<std::int64_t> process_id_;
  std::uint64_t event_count_ = 0;
  std::uint64_t run_count_ = 0;
  bool are_events_from_onnxruntime_ = false;
};

}  // namespace

Result<Trace> read_onnxruntime_trace_text(std::string_view json) {
  OnnxTraceConverter converter;
  const formats::JsonObjectsResult parse_result =
      formats::for_each_json_object(json, [&](const JsonFields& event) { converter.add(event); });
  return std::move(converter).finish(parse_result);
}

Result<Trace> read_onnxruntime_trace(const std::string& path) {
  Result<TraceBytes> text = read_trace_file(path);
  if (!text) return std::move(text).error();
  Result<Trace> trace = read_onnxruntime_trace_text(text->view());
  if (!trace) return std::move(trace).error().with_context(path);
  text->report_damage(trace->diagnostics);
  return trace;
}

}  // namespace joulemap::ingest
