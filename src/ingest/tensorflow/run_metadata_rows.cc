// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <optional>
#include <string>

#include "formats/protobuf.h"
#include "ingest/tensorflow/node_executions.h"

namespace joulemap::ingest {
namespace {

using formats::ProtobufReader;

// Field numbers of tensorflow/core/protobuf/config.proto and tensorflow/core/framework/step_stats.proto. The end of a
// node is relative to its start.
constexpr std::uint32_t kRunMetadataStepStatsField = 1;
constexpr std::uint32_t kStepStatsDevicesField = 1;
constexpr std::uint32_t kDeviceNameField = 1, kDeviceNodesField = 2;
constexpr std::uint32_t kNodeNameField = 1, kNodeStartField_us = 2, kNodeEndField_us = 5, kNodeOutputField = 7,
                        kNodeLabelField = 8, kNodeStartField_ns = 13, kNodeEndField_ns = 16;
constexpr std::uint32_t kOutputSlotField = 1, kOutputTensorField = 3;
constexpr std::uint32_t kTensorTypeField = 1, kTensorShapeField = 2;
constexpr std::uint32_t kShapeDimensionField = 2, kDimensionSizeField = 1;
// DataType of tensorflow/core/framework/types.proto, by number. A type of references is 100 more.
constexpr std::array<std::string_view, 24> kTensorFlowTypeNames = {
    "",          "float",  "double",     "int32", "uint8",    "int16",    "int8",     "string",
    "complex64", "int64",  "bool",       "qint8", "quint8",   "qint32",   "bfloat16", "qint16",
    "quint16",   "uint16", "complex128", "half",  "resource", "resource", "uint32",   "uint64"};
constexpr std::uint64_t kReferenceTypeOffset = 100;
constexpr std::int64_t kMaxEventTime_us = 4'000'000'000'000'000;  // the year 2096; larger values would overflow

// Visits every message in a field, and the beginning of the last one in a truncated file. Returns false if the bytes
// are truncated or invalid.
template <class Visit>
bool for_each_message(std::string_view bytes, std::uint32_t field, Visit visit) {
  ProtobufReader fields(bytes);
  while (fields.next()) {
    if (fields.field() == field) visit(fields.bytes());
  }
  if (!fields.truncated_field().empty() && fields.field() == field) visit(fields.truncated_field());
  return !fields.damaged();
}

std::string_view read_device_name(std::string_view device_stats) {
  ProtobufReader fields(device_stats);
  while (fields.next()) {
    if (fields.field() == kDeviceNameField) return fields.bytes();
  }
  return {};
}

// Whether the bytes are a StepStats: the names of its devices are paths.
bool is_step_stats(std::string_view bytes) {
  bool has_device_path = false;
  for_each_message(bytes, kStepStatsDevicesField, [&](std::string_view device) {
    has_device_path = has_device_path || read_device_name(device).starts_with('/');
  });
  return has_device_path;
}

std::string read_shape_text(std::string_view shape) {
  std::string sizes;
  ProtobufReader fields(shape);
  while (fields.next()) {
    if (fields.field() != kShapeDimensionField) continue;
    std::int64_t size = 0;
    ProtobufReader dimension(fields.bytes());
    while (dimension.next()) {
      if (dimension.field() == kDimensionSizeField) size = dimension.signed_number();
    }
    sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
  }
  return sizes;
}

void read_node_output(std::string_view bytes, std::string_view node, NodeInputTensors& tensors) {
  std::int64_t slot = 0;
  std::uint64_t type = 0;
  std::string sizes;
  ProtobufReader fields(bytes);
  while (fields.next()) {
    if (fields.field() == kOutputSlotField) slot = fields.signed_number();
    if (fields.field() != kOutputTensorField) continue;
    ProtobufReader tensor(fields.bytes());
    while (tensor.next()) {
      if (tensor.field() == kTensorTypeField) type = tensor.unsigned_number();
      if (tensor.field() == kTensorShapeField) sizes = read_shape_text(tensor.bytes());
    }
  }
  if (type > kReferenceTypeOffset) type -= kReferenceTypeOffset;
  const std::string_view name = type < kTensorFlowTypeNames.size() ? kTensorFlowTypeNames[type] : std::string_view();
  if (!name.empty()) tensors.add_output(std::string(node) + ":" + std::to_string(slot), name, std::move(sizes));
}

struct NodeLabel {
  std::string_view node;
  std::string_view op;
  std::string_view kernel;
  std::optional<std::string_view> inputs = {};
};

// Parses the label of a row on a device: "node = Op(input, input)".
NodeLabel parse_node_label(std::string_view name, std::string_view text) {
  NodeLabel label{.node = name};
  const std::size_t equals_position = text.find(" = ");
  if (equals_position == std::string_view::npos) return label;
  text.remove_prefix(equals_position + 3);
  const std::size_t bracket = text.find('(');
  label.op = text.substr(0, bracket);
  if (bracket != std::string_view::npos) label.inputs = text.substr(bracket + 1, text.rfind(')') - bracket - 1);
  return label;
}

// Parses the label of a row on a stream: "kernel (its sizes) @@node:Op#...", or the node's name itself is "node:Op".
NodeLabel parse_kernel_label(std::string_view name, std::string_view text) {
  NodeLabel label{.kernel = text.substr(0, text.find("@@"))};
  const std::size_t mark = text.find("@@");
  if (mark != std::string_view::npos) {
    const std::string_view annotation = text.substr(mark + 2);
    if (const std::string_view node = annotation.substr(0, annotation.find('#')); !node.empty()) name = node;
  }
  label.node = name.substr(0, name.find(':'));
  if (const std::size_t colon = name.find(':'); colon != std::string_view::npos) {
    const std::string_view op_text = name.substr(colon + 1);
    label.op = op_text.substr(0, op_text.find(':'));
  }
  return label;
}

bool is_gpu_tracer_device(std::string_view device) {
  return device.find("/stream:") != std::string_view::npos || device.find("/memcpy") != std::string_view::npos;
}

void read_node_stats(std::string_view bytes, std::string_view device, NodeExecutions& result,
                     NodeInputTensors& tensors) {
  std::string_view name, text;
  std::int64_t start_us = 0, end_us = 0, start_ns = 0, end_ns = 0;
  ProtobufReader fields(bytes);
  while (fields.next()) {
    if (fields.field() == kNodeNameField) name = fields.bytes();
    if (fields.field() == kNodeOutputField) read_node_output(fields.bytes(), name, tensors);
    if (fields.field() == kNodeLabelField) text = fields.bytes();
    if (fields.field() == kNodeStartField_us) start_us = fields.signed_number();
    if (fields.field() == kNodeEndField_us) end_us = fields.signed_number();
    if (fields.field() == kNodeStartField_ns) start_ns = fields.signed_number();
    if (fields.field() == kNodeEndField_ns) end_ns = fields.signed_number();
  }
  if (fields.damaged()) {
    ++result.damaged_message_count;
    return;
  }
  // Old versions have only microseconds.
  if (start_ns == 0) {
    start_ns = start_us > 0 && start_us <= kMaxEventTime_us ? start_us * 1000 : -1;
    end_ns = end_us >= 0 && end_us <= kMaxEventTime_us ? end_us * 1000 : -1;
  }
  if (start_ns < 0 || start_ns > kMaxEventTime_us * 1000 || end_ns < 0 || end_ns > kMaxEventTime_us * 1000) {
    ++result.rows_without_time;
    return;
  }
  const NodeLabel label = is_gpu_tracer_device(device) ? parse_kernel_label(name, text) : parse_node_label(name, text);
  if (label.inputs) tensors.add_inputs(label.node, *label.inputs);
  result.rows.push_back({start_ns, end_ns, result.interned_texts.intern(device),
                         result.interned_texts.intern(label.node), result.interned_texts.intern(label.op),
                         result.interned_texts.intern(label.kernel), 0, result.steps});
}

void read_step_stats(std::string_view bytes, NodeExecutions& result) {
  const std::size_t first_row = result.rows.size();
  NodeInputTensors tensors;
  const bool is_whole = for_each_message(bytes, kStepStatsDevicesField, [&](std::string_view device_stats) {
    const std::string_view device = read_device_name(device_stats);
    const bool has_all_nodes = for_each_message(device_stats, kDeviceNodesField, [&](std::string_view node) {
      read_node_stats(node, device, result, tensors);
    });
    result.is_truncated |= !has_all_nodes;
  });
  result.is_truncated |= !is_whole;
  result.set_tensors(first_row, tensors);
  ++result.steps;
}

}  // namespace

bool read_run_metadata(std::string_view bytes, NodeExecutions& result) {
  if (is_step_stats(bytes)) {
    read_step_stats(bytes, result);
    return true;
  }
  bool has_step_stats = false;
  const bool is_whole = for_each_message(bytes, kRunMetadataStepStatsField, [&](std::string_view step_stats) {
    if (!is_step_stats(step_stats)) return;
    has_step_stats = true;
    read_step_stats(step_stats, result);
  });
  if (has_step_stats) result.is_truncated |= !is_whole;
  return has_step_stats;
}

}  // namespace joulemap::ingest
