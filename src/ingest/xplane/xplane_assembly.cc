// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/scoped_signal_block.h"

namespace joulemap::ingest {
namespace {

constexpr std::string_view kStepNamePrefix =
    "ProfilerStep#";  // PyTorch's name of a step, which scope_assignment/ recognizes

}  // namespace

XPlaneAssembly::XPlaneAssembly(TraceBuilder& builder, std::vector<XPlaneEventConverter>& readers)
    : builder_(builder), readers_(readers), index_maps_(readers.size()) {}

void XPlaneAssembly::add(std::size_t number, std::size_t reader, XSegmentEvents events, Diagnostics damage) {
  if (number >= segments_.size()) segments_.resize(number + 1);
  const Trace& reader_trace = readers_[reader].builder().trace();
  const TableSizes sizes{reader_trace.names.size(), reader_trace.kernel_classes.size(),
                         reader_trace.kernel_queues.size(), reader_trace.byte_counts.size()};
  segments_[number] = {reader, sizes, std::move(events), std::move(damage)};
}

// Adds the entries that the segment's reader first saw in this segment to the trace, and maps their indices.
void XPlaneAssembly::map_new_entries(const Segment& segment) {
  const Trace& reader_trace = readers_[segment.reader].builder().trace();
  IndexMaps& numbers = index_maps_[segment.reader];
  while (numbers.names.size() < segment.table_sizes.names) {
    const TraceName& name = reader_trace.names[numbers.names.size()];
    numbers.names.push_back(builder_.intern_name(name.text, name.scope));
  }
  while (numbers.classes.size() < segment.table_sizes.classes) {
    const KernelClass& kernel_class = reader_trace.kernel_classes[numbers.classes.size()];
    numbers.classes.push_back(
        builder_.intern_kernel_class(kernel_class.kind, kernel_class.name, kernel_class.grid, kernel_class.block));
  }
  while (numbers.queues.size() < segment.table_sizes.queues) {
    numbers.queues.push_back(builder_.intern_queue(reader_trace.kernel_queues[numbers.queues.size()]));
  }
  while (numbers.bytes.size() < segment.table_sizes.bytes) {
    numbers.bytes.push_back(builder_.intern_byte_count(reader_trace.byte_counts[numbers.bytes.size()]));
  }
}

void XPlaneAssembly::remap_indices(TraceEvent& event, const IndexMaps& numbers) const {
  if (!is_on_gpu(event.kind)) {
    event.name_index = numbers.names[event.name_index];
    return;
  }
  event.name_index = numbers.classes[event.name_index];
  event.track_index = numbers.queues[event.track_index];
  event.detail_index = numbers.bytes[event.detail_index];
  if (event.external_id > 0) event.external_id = numbers.names[event.external_id - 1] + 1;
}

void XPlaneAssembly::remap_event_indices(std::size_t first_segment, std::size_t stride) {
  for (std::size_t i = first_segment; i < segments_.size(); i += stride) {
    const IndexMaps& numbers = index_maps_[segments_[i].reader];
    for (std::vector<TraceEvent>& block : segments_[i].events.blocks) {
      for (TraceEvent& event : block) remap_indices(event, numbers);
    }
  }
}

Diagnostics XPlaneAssembly::finish(std::size_t threads) {
  for (const Segment& segment : segments_) map_new_entries(segment);
  std::vector<std::thread> workers;
  {
    const ScopedSignalBlock signal_block;
    for (std::size_t i = 1; i < threads; ++i) workers.emplace_back([=, this] { remap_event_indices(i, threads); });
  }
  remap_event_indices(0, threads);
  for (std::thread& worker : workers) worker.join();

  Diagnostics damage;
  XSegmentEvents merged_events;  // begun, operation_ends and graph_kernels of all segments
  for (Segment& segment : segments_) {
    const IndexMaps& numbers = index_maps_[segment.reader];
    damage.add_all(segment.damage);
    builder_.add_event_blocks(std::move(segment.events.blocks));
    for (XSegmentEvents::OperationBegin begun : segment.events.open_operations) {
      begun.name = numbers.names[begun.name];
      merged_events.open_operations.push_back(begun);
    }
    merged_events.operation_ends.insert(merged_events.operation_ends.end(), segment.events.operation_ends.begin(),
                                        segment.events.operation_ends.end());
    merged_events.steps.insert(merged_events.steps.end(), segment.events.steps.begin(), segment.events.steps.end());
    for (GraphKernel& kernel : segment.events.graph_kernels) {
      remap_indices(kernel.kernel_event, numbers);
      merged_events.graph_kernels.push_back(kernel);
    }
  }
  segments_.clear();
  for (XPlaneEventConverter& reader : readers_) builder_.merge_event_counts(reader.builder());
  add_cross_thread_ends(merged_events);
  add_graph_kernels(std::move(merged_events.graph_kernels));
  add_steps(std::move(merged_events.steps));
  return damage;
}

void XPlaneAssembly::add_steps(std::vector<XStep> candidates) {
  const XSteps profile_steps = select_profile_steps(std::move(candidates));
  for (const XStep& step : profile_steps.steps) {
    builder_.add_event({.start_ns = step.start_ns,
                        .duration_ns = std::max<std::int64_t>(step.end_ns - step.start_ns, 0),
                        .name_index = builder_.intern_name(fmt::format("{}{}", kStepNamePrefix, *step.number)),
                        .track_index = step.track,
                        .kind = EventKind::annotation});
  }
  builder_.trace().read_event_count -= profile_steps.steps.size();  // their events were counted when they were read
  builder_.trace().are_steps_inferred = profile_steps.are_inferred;
}

// For each operation that ended on another thread than it began, adds the rest of its time on the thread that ended it.
void XPlaneAssembly::add_cross_thread_ends(const XSegmentEvents& events) {
  std::unordered_map<std::int64_t, OperationBegin> begun;
  for (const XSegmentEvents::OperationBegin& open_operation : events.open_operations)
    begun.insert_or_assign(open_operation.id, OperationBegin{open_operation.end_ns, open_operation.name});
  for (const XSegmentEvents::OperationEnd& end : events.operation_ends) {
    const auto operation_begin = begun.find(end.id);
    if (operation_begin == begun.end() || operation_begin->second.end_ns >= end.end_ns) continue;
    const auto& [end_ns, name] = operation_begin->second;
    builder_.add_event(
        {.start_ns = end_ns, .duration_ns = end.end_ns - end_ns, .name_index = name, .track_index = end.track});
  }
}

void XPlaneAssembly::add_graph_kernels(std::vector<GraphKernel> kernels) {
  if (kernels.empty()) return;
  XPlaneOperations& operations = readers_.front().operations();  // any reader: each has all programs
  const std::uint64_t unknown = assign_graph_operations(kernels, operations);
  std::vector<std::uint32_t> names;
  for (std::uint32_t i = 0; i < operations.size(); ++i) {
    names.push_back(builder_.intern_name(operations[i].name, operations[i].scope));
  }
  for (GraphKernel& kernel : kernels) {
    if (kernel.operation_index) kernel.kernel_event.external_id = names[*kernel.operation_index] + 1;
    builder_.add_event(kernel.kernel_event);
  }
  if (unknown == 0) return;
  builder_.trace().diagnostics.add({"graph_kernels_by_name", unknown,
                                    "xplane: kernels of CUDA graphs that do not match their program are identified by "
                                    "name only: layers that share a kernel cannot be distinguished",
                                    "profile with XLA_FLAGS=--xla_gpu_enable_command_buffer= (no graphs)"});
}

}  // namespace joulemap::ingest
