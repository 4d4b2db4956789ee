// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <optional>
#include <string>
#include <unordered_map>

#include "formats/json_objects.h"
#include "ingest/tensorflow/node_executions.h"

namespace joulemap::ingest {
namespace {

using formats::JsonFields;

constexpr double kMaxTimelineTime_us = 4e15;  // the year 2096; larger values would overflow
constexpr std::string_view kComputeProcessSuffix = " Compute";

std::optional<std::int64_t> read_timeline_time_ns(const JsonFields& event, std::string_view member) {
  const std::optional<double> number = event.number(member);
  if (!number || !(std::abs(*number) < kMaxTimelineTime_us)) return std::nullopt;
  if (const auto time_us = event.integer(member)) return *time_us * 1000;
  return std::llround(*number * 1000);
}

// In a timeline, a process is a device. Its id is a number, or a text in files of other writers.
std::string process_id_of(const JsonFields& event) {
  const std::optional<std::int64_t> number = event.integer("pid");
  return number ? std::to_string(*number) : std::string(event.text("pid"));
}

// The inputs of a node in the order of their numbers: args.input0, args.input1, ...
std::string read_timeline_inputs(const JsonFields& event) {
  std::string inputs;
  for (std::size_t i = 0;; ++i) {
    const std::string_view name = event.text(fmt::format("args.input{}", i));
    if (name.empty()) return inputs;
    if (i > 0) inputs += ',';
    inputs += name;
  }
}

// Parses the text form of a TensorDescription, with show_memory=True: dtype: DT_FLOAT shape { dim { size: 256 } ... }
void add_tensor_description(std::string_view name, std::string_view text, NodeInputTensors& tensors) {
  constexpr std::string_view kTypeMarker = "dtype: DT_",
                             kSizeMarker = "size: ", kAllocationMarker = "allocation_description";
  const std::size_t type_position = text.find(kTypeMarker);
  if (name.empty() || type_position == std::string_view::npos) return;
  std::string type;
  for (const char letter : text.substr(type_position + kTypeMarker.size())) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) break;
    type += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  text = text.substr(0, text.find(kAllocationMarker));
  std::string sizes;
  for (std::size_t size = text.find(kSizeMarker); size != std::string_view::npos;
       size = text.find(kSizeMarker, size + 1)) {
    const std::string_view number = text.substr(size + kSizeMarker.size());
    sizes += (sizes.empty() ? "" : ",") + std::string(number.substr(0, number.find_first_not_of("-0123456789")));
  }
  tensors.add_output(name, type == "variant" ? "resource" : type, std::move(sizes));
}

}  // namespace

// A device's name may follow its rows, so `device` of a row is the process id until all events are read.
bool read_timeline(std::string_view json, NodeExecutions& result) {
  const std::size_t first_row = result.rows.size();
  std::unordered_map<std::string, std::string> devices;
  NodeInputTensors tensors;
  const auto add_row = [&](const JsonFields& event) {
    const std::optional<std::int64_t> start_ns = read_timeline_time_ns(event, "ts");
    const std::optional<std::int64_t> duration_ns = read_timeline_time_ns(event, "dur");
    if (!start_ns || !duration_ns) {
      ++result.rows_without_time;
      return;
    }
    const std::string_view op = event.text("args.op").empty() ? event.text("name") : event.text("args.op");
    const std::string_view node = event.text("args.name").empty() ? event.text("name") : event.text("args.name");
    result.rows.push_back({*start_ns, *duration_ns, result.interned_texts.intern(process_id_of(event)),
                           result.interned_texts.intern(node), result.interned_texts.intern(op),
                           result.interned_texts.intern(event.text("args.kernel")), 0, result.steps});
    tensors.add_inputs(node, read_timeline_inputs(event));
  };
  const formats::JsonObjectsResult parse_result = formats::for_each_json_object(json, [&](const JsonFields& event) {
    if (event.text("ph") == "X") return add_row(event);
    ++result.skipped_event_count;
    if (event.text("ph") == "O")
      add_tensor_description(event.text("name"), event.text("args.snapshot.tensor_description"), tensors);
    if (event.text("ph") == "M" && event.text("name") == "process_name") {
      std::string_view name = event.text("args.name");
      const bool is_compute_process = name.ends_with(kComputeProcessSuffix);
      if (is_compute_process) name.remove_suffix(kComputeProcessSuffix.size());
      if (name.find("/device:") != std::string_view::npos || name.find(":CPU:") != std::string_view::npos ||
          name.find(":GPU:") != std::string_view::npos || name.find("/gpu:") != std::string_view::npos ||
          name.find("/cpu:") != std::string_view::npos) {
        devices.insert_or_assign(process_id_of(event), name);
      }
    }
  });
  if (!parse_result.has_array || devices.empty()) return false;
  result.damaged_message_count += parse_result.damaged_count;
  result.is_truncated |= !parse_result.has_array_ended;
  std::size_t named_row_end = first_row;
  for (std::size_t i = first_row; i < result.rows.size(); ++i) {
    NodeExecution row = result.rows[i];
    const auto device = devices.find(result.interned_texts[row.device]);
    if (device == devices.end()) {
      ++result.rows_of_unnamed_device;
      continue;
    }
    row.device = result.interned_texts.intern(device->second);
    result.rows[named_row_end++] = row;
  }
  result.rows.resize(named_row_end);
  result.set_tensors(first_row, tensors);
  ++result.steps;
  return true;
}

}  // namespace joulemap::ingest
