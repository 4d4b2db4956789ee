// SPDX-License-Identifier: Apache-2.0
#include "formats/protobuf.h"
#include "ingest/tensorflow/step_rows.h"

namespace joulemap::ingest {
namespace {

using formats::ProtobufReader;

// Field numbers of tensorflow/core/protobuf/config.proto and tensorflow/core/framework/step_stats.proto. The end of a
// node is relative to its start.
constexpr std::uint32_t kMetadataStepStats = 1;
constexpr std::uint32_t kStatsDevices = 1;
constexpr std::uint32_t kDeviceName = 1, kDeviceNodes = 2;
constexpr std::uint32_t kNodeName = 1, kNodeStart_us = 2, kNodeEnd_us = 5, kNodeLabel = 8, kNodeStart_ns = 13,
                        kNodeEnd_ns = 16;
constexpr std::int64_t kMost_us = 4'000'000'000'000'000;  // the year 2096; larger values would overflow

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

std::string_view device_of(std::string_view device_stats) {
  ProtobufReader fields(device_stats);
  while (fields.next()) {
    if (fields.field() == kDeviceName) return fields.bytes();
  }
  return {};
}

// Whether the bytes are a StepStats: the names of its devices are paths.
bool is_step_stats(std::string_view bytes) {
  bool found = false;
  for_each_message(bytes, kStatsDevices,
                   [&](std::string_view device) { found = found || device_of(device).starts_with('/'); });
  return found;
}

struct Label {
  std::string_view node;
  std::string_view op;
  std::string_view kernel;
};

// Parses the label of a row on a device: "node = Op(input, input)".
Label node_label(std::string_view name, std::string_view text) {
  Label label{.node = name};
  const std::size_t equals = text.find(" = ");
  if (equals == std::string_view::npos) return label;
  text.remove_prefix(equals + 3);
  label.op = text.substr(0, text.find('('));
  return label;
}

// Parses the label of a row on a stream: "kernel (its sizes) @@node:Op#...", or the node's name itself is "node:Op".
Label kernel_label(std::string_view name, std::string_view text) {
  Label label{.kernel = text.substr(0, text.find("@@"))};
  const std::size_t mark = text.find("@@");
  if (mark != std::string_view::npos) {
    const std::string_view annotation = text.substr(mark + 2);
    if (const std::string_view node = annotation.substr(0, annotation.find('#')); !node.empty()) name = node;
  }
  label.node = name.substr(0, name.find(':'));
  if (const std::size_t colon = name.find(':'); colon != std::string_view::npos) {
    const std::string_view rest = name.substr(colon + 1);
    label.op = rest.substr(0, rest.find(':'));
  }
  return label;
}

bool is_of_gpu_tracer(std::string_view device) {
  return device.find("/stream:") != std::string_view::npos || device.find("/memcpy") != std::string_view::npos;
}

void read_node(std::string_view bytes, std::string_view device, StepRows& result) {
  std::string_view name, text;
  std::int64_t start_us = 0, end_us = 0, start_ns = 0, end_ns = 0;
  ProtobufReader fields(bytes);
  while (fields.next()) {
    if (fields.field() == kNodeName) name = fields.bytes();
    if (fields.field() == kNodeLabel) text = fields.bytes();
    if (fields.field() == kNodeStart_us) start_us = fields.signed_number();
    if (fields.field() == kNodeEnd_us) end_us = fields.signed_number();
    if (fields.field() == kNodeStart_ns) start_ns = fields.signed_number();
    if (fields.field() == kNodeEnd_ns) end_ns = fields.signed_number();
  }
  if (fields.damaged()) {
    ++result.damaged;
    return;
  }
  // Old versions have only microseconds.
  if (start_ns == 0) {
    start_ns = start_us > 0 && start_us <= kMost_us ? start_us * 1000 : -1;
    end_ns = end_us >= 0 && end_us <= kMost_us ? end_us * 1000 : -1;
  }
  if (start_ns < 0 || start_ns > kMost_us * 1000 || end_ns < 0 || end_ns > kMost_us * 1000) {
    ++result.rows_without_time;
    return;
  }
  const Label label = is_of_gpu_tracer(device) ? kernel_label(name, text) : node_label(name, text);
  result.rows.push_back({start_ns, end_ns, result.texts.intern(device), result.texts.intern(label.node),
                         result.texts.intern(label.op), result.texts.intern(label.kernel)});
}

void read_step_stats(std::string_view bytes, StepRows& result) {
  result.found = true;
  const bool is_whole = for_each_message(bytes, kStatsDevices, [&](std::string_view stats) {
    const std::string_view device = device_of(stats);
    const bool has_all_nodes =
        for_each_message(stats, kDeviceNodes, [&](std::string_view node) { read_node(node, device, result); });
    result.is_truncated |= !has_all_nodes;
  });
  result.is_truncated |= !is_whole;
}

}  // namespace

StepRows read_run_metadata(std::string_view bytes) {
  StepRows result;
  if (is_step_stats(bytes)) {
    read_step_stats(bytes, result);
    return result;
  }
  const bool is_whole = for_each_message(bytes, kMetadataStepStats, [&](std::string_view stats) {
    if (is_step_stats(stats)) read_step_stats(stats, result);
  });
  result.is_truncated |= !is_whole;
  return result;
}

}  // namespace joulemap::ingest
